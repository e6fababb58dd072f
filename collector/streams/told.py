"""What a stream says tonight, however it was judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collector.streams.stream import Stream


@dataclass(frozen=True, slots=True)
class Change:
    """A change that is seen tonight: the index of its first night, and what it is a change from.

    ``level`` and ``spread`` are mean and SD of the nights before, on the
    metric's own scale; against a stated null, that null's own.
    """

    start: int
    level: float
    spread: float


@dataclass(frozen=True, slots=True)
class Told:
    """What one stream's nights say.

    ``nights`` were measured, ``missing`` more are needed before it can be
    judged. ``evidence`` and ``guarded``, M with all nights and without the
    most extreme one, are ``None`` where it can't be, and ``guarded`` where one
    night may decide. ``detectable`` is the smallest lasting change that would
    be in alarm by tonight, in the stream's unit. ``change`` is ``None`` below
    the threshold.
    """

    stream: Stream
    nights: int
    missing: int
    threshold: float
    evidence: float | None = None
    guarded: float | None = None
    detectable: float | None = None
    change: Change | None = None

    @property
    def judged(self) -> bool:
        """Whether there were nights enough."""
        return self.evidence is not None

    @property
    def state(self) -> Mapping[str, Any]:
        """What is kept as evidence of a finding."""
        return {
            "nights": self.nights,
            "missing_nights": self.missing,
            "evidence": self.evidence,
            "guarded": self.guarded,
            "threshold": self.threshold,
            "detectable": self.detectable,
        }


def missing_nights(nights: int, baseline: int) -> int:
    """Return how many nights are missing until tonight can be held against ``baseline`` earlier ones."""
    return max(baseline + 1 - nights, 0)
