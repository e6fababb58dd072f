"""``ringtrue tokens``: was the prompt the model's own? By IDs, by counts, and by the template's file."""
