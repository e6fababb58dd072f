"""How long an alarm stands: until its stream is back where it was before the change.

For independent normal nights and a baseline that is known exactly, a shift that
lasts seems gone on about 1 % of nights at 2 SD and on fewer than one in 100,000
at 3 SD; a stream that really is back is seen to be on 97 % of nights once five
have passed. What baselines of real length do is simulated in
``benchmarks/series_in_the_cycle.py``, and for counts and e-values in
``benchmarks/counts_in_the_cycle.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alarms.metric import Metric
from ringtrue.stats import wilson

Values = NDArray[np.float64]

BACK_NIGHTS = 5
"""The nights that decide together whether a stream is back."""

BACK_ODDS = 100.0
"""How much better than the change the null has to explain the nights since, for evidence against a null."""


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


def rate_is_back(events: Values, trials: Values, before: float, changed: float) -> bool:
    """Return whether the last `BACK_NIGHTS` nights have the rate of ``before`` again, not the ``changed``.

    ``events`` and ``trials`` [nights] are those measured since the alarm. The
    95 % Wilson interval of the last nights together has to cover the old rate
    and to leave out that of the change: few trials, whose interval covers
    both, take nothing back.
    """
    if trials.size < BACK_NIGHTS:
        return False
    last = wilson(int(events[-BACK_NIGHTS:].sum()), int(trials[-BACK_NIGHTS:].sum()))
    if last is None or last.low is None or last.high is None:
        return False
    return bool(last.low <= before <= last.high and not last.low <= changed <= last.high)


def nights_of_the_null(log_e_values: Values) -> int | None:
    """Return how many of the last nights say together that the null holds again, ``None`` if none do.

    ``log_e_values`` [nights] are those measured since the change: at least
    `BACK_NIGHTS` nights, the product of whose e-values is 1 / `BACK_ODDS` or
    less. Given nights of a change that the e-value's alternative describes
    have so small a product in at most one case of a hundred (Markov's
    inequality, with null and alternative exchanged).
    """
    products = np.cumsum(log_e_values[::-1])
    enough = np.flatnonzero(products[BACK_NIGHTS - 1 :] <= -np.log(BACK_ODDS))
    return int(enough[0]) + BACK_NIGHTS if enough.size else None
