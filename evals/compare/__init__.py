"""``ringtrue compare``: two models side by side, over the whole vocabulary."""
