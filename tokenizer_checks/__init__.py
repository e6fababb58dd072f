"""Judges token IDs: did the server turn these messages into the tokens the model was trained on?"""
