"""Intervals. Every function says how little data is too little, and then answers ``None``.

Random generators are passed in, so that a verdict can be repeated to the digit.
Background: docs/methods.md, "Intervals".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit  # scipy.stats would take half a second to load

from ringtrue.records import Interval

Values = NDArray[np.float64]
RESAMPLES = 4000
_BLOCK = 500  # resamples drawn at once: bounds memory at block x n indices


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """Return the two-sided Wilson score interval of a rate, or ``None`` for zero trials.

    Raises:
        ValueError: when ``successes`` is not in [0, ``trials``].
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if trials == 0:
        return None
    z = float(ndtri(0.5 + level / 2))
    rate = successes / trials
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2))
    # At the ends the formula is exact only up to rounding; the bound itself is known.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low, high, level)


def bootstrap_means(values: Values, rng: np.random.Generator, resamples: int = RESAMPLES) -> Values:
    """Return column means of ``values`` under resampling of its rows.

    ``values`` has shape [prompts, columns] and the result [resamples, columns]:
    all columns of a prompt are drawn together, so that ratios of means stay paired.
    """
    count = values.shape[0]
    blocks = []
    for start in range(0, resamples, _BLOCK):
        picks = rng.integers(0, count, size=(min(_BLOCK, resamples - start), count))
        blocks.append(values[picks].mean(axis=1))
    return np.concatenate(blocks)


def mean_interval(values: Values, rng: np.random.Generator, level: float = 0.98) -> Interval | None:
    """Return the percentile bootstrap interval of a mean over prompts (shape [prompts]).

    The bounds are one-sided limits at ``(1 + level) / 2`` each: the default
    gives the 99 % lower and the 99 % upper limit. Fewer than two prompts carry
    no spread: ``None``.
    """
    if values.shape[0] < 2:
        return None
    means = bootstrap_means(values[:, None], rng)[:, 0]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def ratio_interval(
    top: Values, bottom: Values, rng: np.random.Generator, level: float = 0.98
) -> Interval | None:
    """Return the paired bootstrap interval of ``mean(top) / mean(bottom)``, both of shape [prompts].

    Bounds are one-sided as in `mean_interval`. ``None`` for fewer than two
    prompts, or when a resampled bottom mean is not positive: there is then no
    ratio, and the caller needs a rule for a floor of zero.
    """
    if top.shape[0] < 2:
        return None
    means = bootstrap_means(np.column_stack([top, bottom]), rng)
    if not bool(np.all(means[:, 1] > 0)):
        return None
    low, high = np.quantile(means[:, 0] / means[:, 1], [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def smallest_value_limit(values: Values, confidence: float = 0.99) -> float:
    """Return a distribution-free lower confidence limit of the mean of a non-negative quantity.

    All n values are at least their minimum m, so with the given confidence a
    fresh value is at least m with probability (1 - confidence)^(1/n), and by
    Markov's inequality the mean is at least m times that. Weak for few
    values, and honest: it needs no shape. ``values`` has shape [prompts].

    Raises:
        ValueError: for an empty array or a negative value.
    """
    if values.size == 0 or float(values.min()) < 0:
        raise ValueError("needs at least one value, none negative")
    return float(values.min()) * float((1 - confidence) ** (1 / values.size))


def clusters_needed(level: float = 0.98) -> int:
    """Return the fewest clusters from which an interval of this level can be claimed.

    With probability 2^-n all of n clusters lie on one side of the centre, and
    then no resample reaches across it; that must not happen more often than
    the tail of one side allows. 7 for the default level, 2 at the very least.
    """
    return max(2, math.ceil(math.log2(2 / (1 - level))))


def cluster_resamples(
    clusters: int, rng: np.random.Generator, resamples: int = RESAMPLES, block: int = _BLOCK
) -> Iterator[NDArray[np.int32]]:
    """Yield how often each cluster is drawn, [at most block, clusters], until there are ``resamples`` rows.

    Whole clusters are drawn with replacement, as many as there are, so each
    row sums to ``clusters``. How the rows are cut into blocks does not change
    them: figures that are computed from the same generator state stay paired.
    """
    chances = np.full(clusters, 1 / clusters)
    for start in range(0, resamples, block):
        yield rng.multinomial(clusters, chances, size=min(block, resamples - start)).astype(np.int32)


def weighted_percentiles(
    ascending: Values, counts: NDArray[np.int32], fractions: Sequence[float]
) -> NDArray[np.float64]:
    """Return percentiles, [resamples, fractions], of sorted values of which each row repeats some.

    Row j of ``counts`` [resamples, n] says how often it holds each value of
    ``ascending`` [n]: at least one of them. Linear interpolation between the
    two nearest, as ``numpy.percentile`` does by default.
    """
    ends = np.cumsum(counts, axis=1, dtype=np.int64)
    places = (ends[:, -1:] - 1) * np.asarray(fractions)
    below = np.floor(places).astype(np.int64)
    above = np.ceil(places).astype(np.int64)
    wanted = np.concatenate([below, above], axis=1)
    picks = np.stack([row.searchsorted(at, side="right") for row, at in zip(ends, wanted, strict=True)])
    low, high = np.split(ascending[picks], 2, axis=1)
    return np.asarray(low + (high - low) * (places - below))


def resampled_interval(draws: Values, clusters: int, level: float = 0.98) -> Interval | None:
    """Return the interval of a figure from its value in each resample of ``clusters`` clusters.

    The percentile interval is too narrow for few clusters; its tails are
    moved outwards to where Student's t for that many would put them (the
    expanded percentile interval; Hesterberg 2015, "What Teachers Should Know
    About the Bootstrap"). ``None`` for fewer than `clusters_needed`, or when
    the figure does not exist in some resample.
    """
    if clusters < clusters_needed(level) or not bool(np.isfinite(draws).all()):
        return None
    reach = math.sqrt(clusters / (clusters - 1)) * float(stdtrit(clusters - 1, (1 + level) / 2))
    tail = float(ndtr(-reach))
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(float(low), float(high), level)
