"""Tool calls of one night: asked plain and streamed, judged, and put beside the raw text."""
