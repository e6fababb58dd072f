"""How long answers are, and what is wrong with them."""
