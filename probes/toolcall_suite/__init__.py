"""Requests that want calls: our own suite, the caller's, and which of them a night asks."""
