"""Chat templates: rendered as the model's own, changed as servers change them, and read for faults."""
