"""Single tokens drawn at temperature 1."""
