"""Keeping the garbage collector's pauses out of measured times."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def steady_collector() -> Iterator[None]:
    """Collect now, and then seldom until the block ends.

    For measurements under load, by the one task that runs them: with 500
    streams in flight the usual thresholds stop the loop for 20 to 100 ms at a
    time (measured), which would be reported as the server's.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
