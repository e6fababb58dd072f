"""The truth: exact scoring of one model, and that model behind an OpenAI-compatible server with fault knobs.

The life of a request inside: it enters by ``engine`` and waits at ``worker``,
the one engine thread; ``batching`` puts it beside others of its length,
``scoring`` runs the forward pass, ``generation`` draws tokens, and the result
returns to the caller's event loop.
"""
