"""Readers of the shapes that servers speak, each turned into the same events."""
