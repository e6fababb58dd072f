"""Asking: endpoints over HTTP, what they can do, and the questions put to them."""
