"""First tokens of prompts close to a tie."""
