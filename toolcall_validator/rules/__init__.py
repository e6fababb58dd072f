"""One small rule per code: each takes a case and yields faults."""
