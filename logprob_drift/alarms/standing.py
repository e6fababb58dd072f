"""How long an alarm stands: until its stream is back where it was before the change.

For independent normal nights and a baseline that is known exactly, a shift that
lasts seems gone on about 1 % of nights at 2 SD and on fewer than one in 100,000
at 3 SD; a stream that really is back is seen to be on 97 % of nights once five
have passed. What baselines of real length do is simulated in
``benchmarks/series_in_the_cycle.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alarms.metric import Metric

Values = NDArray[np.float64]

BACK_NIGHTS = 5
"""The nights that decide together whether a stream is back."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Mean and SD of the nights before a change, on the metric's scale; no SD is below the resolution."""

    level: float
    spread: float


def baseline_of(before: Values, metric: Metric) -> Baseline:
    """Return the baseline of the measured nights before a change, [nights], in the metric's unit.

    Raises:
        ValueError: fewer than two nights.
    """
    if before.size < 2:
        raise ValueError(f"{before.size} nights show no spread")
    scaled = metric.scaled(before)
    level = float(scaled.mean())
    return Baseline(level, max(float(scaled.std(ddof=1)), metric.least_sd(level)))


def is_back(since: Values, baseline: Baseline, metric: Metric) -> bool:
    """Return whether the mean of the last `BACK_NIGHTS` measured nights is within one SD of the baseline's.

    ``since`` are the measured nights since the change, [nights], in the
    metric's unit; of fewer than `BACK_NIGHTS` none is back.
    """
    if since.size < BACK_NIGHTS:
        return False
    mean = float(metric.scaled(since[-BACK_NIGHTS:]).mean())
    return abs(mean - baseline.level) <= baseline.spread
