"""One model behind an OpenAI-compatible API, with faults on request.

A request body enters at ``app``, is checked in ``bodies``, becomes prompts in
``planning``, and its answer is written in ``answering`` and ``answers``.
"""
