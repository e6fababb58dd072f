"""Many new sessions, each asked the same."""
