"""Tool calls as a server with constrained decoding answers them, and a knob for every way to spoil one.

What is called is decided in ``decision`` and written in ``values``; ``forcing``
makes it the raw text of the replica's format, ``delivered`` takes that apart
again with the format's own parser, and ``wire`` spells the answer. ``knobs`` is
the table of faults.
"""
