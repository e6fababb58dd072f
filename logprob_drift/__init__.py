"""Judges logprobs: alignment, divergence and its bounds, the noise floor, the rule of one night."""
