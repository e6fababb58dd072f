"""One number of a report, with what is known of its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

from ringtrue.records import Interval


@dataclass(frozen=True, slots=True)
class Figure:
    """A statistic over ``n`` sequences.

    ``value`` is ``None`` where the statistic does not exist (a correlation of
    constants). ``interval`` is ``None`` where the sequences are too few for
    one, or where the value describes these positions and estimates nothing (a
    maximum). ``unit`` is ``nats``, ``%``, or empty for a plain number.
    """

    value: float | None
    unit: str
    n: int
    interval: Interval | None = None
