"""What to do when memory runs out: less at a time, then a clear error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reference_engine.models.memory import is_out_of_memory
from ringtrue.errors import MeasureError

Result = TypeVar("Result")


def in_tiles(rows: int, most: int, compute: Callable[[int, int], Result]) -> list[Result]:
    """Return ``compute(start, stop)`` for consecutive tiles that cover ``rows``, at most ``most`` rows each.

    A tile for which memory runs out is tried again at half its size, and the
    later ones stay that small.

    Raises:
        MeasureError: one row alone does not fit.
    """
    results: list[Result] = []
    start, size = 0, most
    while start < rows:
        stop = min(start + size, rows)
        try:
            results.append(compute(start, stop))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if stop - start == 1:
                raise MeasureError(
                    "memory ran out for a single row of logits",
                    remedy="Free memory on the device, or choose another with --device",
                ) from error
            size = (stop - start) // 2
            continue
        start = stop
    return results
