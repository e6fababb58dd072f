"""Runs cycles: takes the lease, examines the endpoints, keeps what was found, and tells it."""
