"""What two models say of the same text, position by position over the whole vocabulary, in figures."""
