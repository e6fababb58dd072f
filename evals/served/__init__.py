"""A running vLLM as a source of a baseline's scores, believed only once it is examined."""
