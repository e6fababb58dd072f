"""Continuations at temperature 0."""
