"""How far two distributions over the whole vocabulary are apart, position by position."""
