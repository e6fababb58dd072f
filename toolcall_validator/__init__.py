"""Judges tool calls and the shape of answers: what broke, where, and who has to act."""
