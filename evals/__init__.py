"""Examines endpoints: asks through the probes, hands the answers to the judges, stores nothing."""
