"""The command ``baseline``: what a model said of a corpus, stored."""
