"""Recorded exchanges, judged: the command ``validate``."""
