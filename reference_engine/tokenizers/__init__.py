"""Tokenizers of every kind of file, read without a model's weights."""
