"""The streams of nightly numbers of one endpoint: which there are, how each is judged, what it says."""
