"""Limits of means over prompts that keep their rate when prompts are few and skewed."""

from __future__ import annotations

import numpy as np
from scipy.stats import t

from ringtrue.records import Interval
from ringtrue.stats import Values, cluster_resamples, clusters_needed


def mean_limits(
    values: Values, weights: Values, rng: np.random.Generator, level: float
) -> tuple[Interval | None, ...]:
    """Return the interval of ``sum(values) / sum(weights)`` of each column of ``values`` [prompts, columns].

    ``weights`` [prompts] are positive: ones for a plain mean, the numbers of
    tokens for a mean per token. Prompts are drawn with replacement, and each
    resample's distance from the mean is measured by its own standard error
    (bootstrap-t; Efron and Tibshirani 1993, "An Introduction to the
    Bootstrap", 12.5); a limit is never nearer than Student's t puts it. Where
    gains are mostly small and now and then a large loss, percentiles of
    resampled means are too near, and where both tails are long bootstrap-t
    alone is (docs/methods.md, "Identity").

    Bounds are one-sided limits at ``(1 + level) / 2``; equal values have
    themselves as limits. ``None`` for fewer prompts than the level needs; a
    side is unbounded where too many resamples hold equal values only.
    """
    count = values.shape[0]
    if count < clusters_needed(level):
        return tuple(None for _ in range(values.shape[1]))
    mean = values.sum(axis=0) / weights.sum()
    error = _error(values, weights)
    # Of equal values rounding leaves a spread that means nothing.
    flat = error <= 1e-12 * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    distances = np.concatenate(
        [
            _distances(drawn.astype(np.float64), values, weights, mean)
            for drawn in cluster_resamples(count, rng)
        ]
    )
    below, above = np.quantile(distances, [(1 - level) / 2, (1 + level) / 2], axis=0, method="nearest")
    reach = float(t.ppf((1 + level) / 2, count - 1))
    below, above = np.minimum(below, -reach), np.maximum(above, reach)
    low = mean - np.where(flat, 0.0, above) * error
    high = mean - np.where(flat, 0.0, below) * error
    return tuple(_interval(float(a), float(b), level) for a, b in zip(low, high, strict=True))


def _interval(low: float, high: float, level: float) -> Interval:
    return Interval(low if np.isfinite(low) else None, high if np.isfinite(high) else None, level)


def _error(values: Values, weights: Values) -> Values:
    """Return the standard error of each column's ratio of sums, linearised."""
    count = values.shape[0]
    residuals = values - weights[:, None] * (values.sum(axis=0) / weights.sum())
    squares: Values = np.sqrt((residuals**2).sum(axis=0) / (count * (count - 1))) / weights.mean()
    return squares


def _distances(drawn: Values, values: Values, weights: Values, mean: Values) -> Values:
    """Return each resample's distance from the mean in its own errors, [resamples, columns]."""
    count = values.shape[0]
    total = drawn @ weights
    resampled = (drawn @ values) / total[:, None]
    # Sum of squared residuals around each resample's own mean, from its moments.
    squares = (
        drawn @ values**2
        - 2 * resampled * (drawn @ (values * weights[:, None]))
        + resampled**2 * (drawn @ weights**2)[:, None]
    )
    error = np.sqrt(np.maximum(squares, 0.0) / (count * (count - 1))) / (total / count)[:, None]
    away = resampled - mean
    # A resample of equal values has no error: it is as far away as can be, or not at all.
    apart = np.abs(away) > 1e-12 * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    farthest = np.where(apart, np.copysign(np.inf, away), 0.0)
    distances: Values = np.divide(away, error, out=farthest, where=error > 0)
    return distances
