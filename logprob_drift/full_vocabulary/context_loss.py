"""Loss against context: where in a sequence the divergence lies, and how it grows with the length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logprob_drift.full_vocabulary.figure import Figure
from logprob_drift.full_vocabulary.kld_sums import quotient
from logprob_drift.full_vocabulary.positions import PositionDivergences, require_floor
from ringtrue.stats import RESAMPLES, Values, cluster_resamples, resampled_interval

_FIRST_EDGE = 16  # tokens; what comes before is one bucket: its positions are few, and models odd there


@dataclass(frozen=True, slots=True)
class ContextBucket:
    """The positions that have ``first`` to ``last`` tokens before them.

    ``kl`` is their mean KL (nats) over the ``kl.n`` sequences that reach so
    far, ``floor`` that of an honest computation on the same positions, and
    ``ratio`` their quotient; both are ``None`` without a floor.
    """

    first: int
    last: int
    positions: int
    kl: Figure
    floor: Figure | None
    ratio: Figure | None


@dataclass(frozen=True, slots=True)
class ContextLoss:
    """The buckets in order, and the slope of log mean KL against log context.

    A slope of 0 is a loss that does not depend on the length, of 1 one that
    grows in proportion to it. It has no value with fewer than two buckets or
    where a bucket's mean is zero. ``floor_slope`` is the floor's, ``None``
    without one.
    """

    buckets: tuple[ContextBucket, ...]
    slope: Figure
    floor_slope: Figure | None


def context_loss(
    positions: PositionDivergences,
    rng: np.random.Generator,
    *,
    floor: Values | None = None,
    level: float = 0.98,
    resamples: int = RESAMPLES,
) -> ContextLoss:
    """Return mean KL per bucket of context, with bootstrap intervals over sequences at ``level``.

    Buckets are 1-15 tokens, 16-31, 32-63 and so on. ``floor`` is the KL of an
    honest computation at the same positions (nats, [positions]). A bucket that
    fewer sequences reach than `clusters_needed` has no interval, nor has a
    slope over so few. The slope is fitted by least squares to one point a
    bucket, at the mean context in it.

    Raises:
        ValueError: a value of the floor is not finite, or its shape is another.
    """
    if floor is not None:
        require_floor(positions, floor)
    table = _Table(positions, floor)
    values = table.of(np.ones((1, table.sequences), dtype=np.int32))
    blocks = [table.of(counts) for counts in cluster_resamples(table.sequences, rng, resamples)]
    draws = {name: np.concatenate([block[name] for block in blocks]) for name in values}

    def bucket_figure(name: str, at: int, unit: str) -> Figure:
        drawn = draws[name][draws["n"][:, at] > 0, at]  # a resample may hold no sequence that long
        return _figure(float(values[name][0, at]), drawn, unit, int(table.reached[at]), level)

    def slope_figure(name: str) -> Figure:
        return _figure(float(values[name][0, 0]), draws[name][:, 0], "", table.sequences, level)

    buckets = tuple(
        ContextBucket(
            first=first,
            last=last,
            positions=int(values["n"][0, at]),
            kl=bucket_figure("kl", at, "nats"),
            floor=None if floor is None else bucket_figure("floor", at, "nats"),
            ratio=None if floor is None else bucket_figure("ratio", at, ""),
        )
        for at, (first, last) in enumerate(table.edges)
    )
    return ContextLoss(buckets, slope_figure("slope"), None if floor is None else slope_figure("floor_slope"))


def _figure(value: float, draws: Values, unit: str, n: int, level: float) -> Figure:
    return Figure(value if np.isfinite(value) else None, unit, n, resampled_interval(draws, n, level))


class _Table:
    """Sums per sequence and bucket."""

    def __init__(self, positions: PositionDivergences, floor: Values | None) -> None:
        clusters, self.sequences = positions.clusters
        edge = np.log2(_FIRST_EDGE)
        powers = np.maximum(np.floor(np.log2(positions.context)), edge - 1).astype(np.int64)
        present, bucket = np.unique(powers, return_inverse=True)
        self.edges = [(1 if p < edge else 2 ** int(p), 2 ** (int(p) + 1) - 1) for p in present]
        shape = (self.sequences, present.size)
        cells = clusters * present.size + bucket

        def summed(column: Values) -> Values:
            sums = np.bincount(cells, weights=column, minlength=shape[0] * shape[1])
            return sums.reshape(shape).astype(np.float64)

        self._counts = summed(np.ones_like(positions.kl))
        self._kl = summed(positions.kl)
        self._floor = None if floor is None else summed(floor)
        mean_context = summed(positions.context.astype(np.float64)).sum(axis=0) / self._counts.sum(axis=0)
        self._logs = np.log(mean_context)

    @property
    def reached(self) -> NDArray[np.int64]:
        """How many sequences reach each bucket, [buckets]."""
        return np.asarray((self._counts > 0).sum(axis=0))

    def of(self, counts: NDArray[np.int32]) -> dict[str, Values]:
        """Return means and slopes where sequence j is drawn ``counts[:, j]`` times; NaN where there is none.

        Shapes are [resamples, buckets], and [resamples, 1] for slopes.
        """
        weights = counts.astype(np.float64)
        n = weights @ self._counts
        found = {"n": n, "kl": quotient(weights @ self._kl, n)}
        found["slope"] = _slopes(self._logs, found["kl"])
        if self._floor is not None:
            found["floor"] = quotient(weights @ self._floor, n)
            found["ratio"] = quotient(found["kl"], found["floor"])
            found["floor_slope"] = _slopes(self._logs, found["floor"])
        return found


def _slopes(logs: Values, means: Values) -> Values:
    """Return the least-squares slopes, [resamples, 1], of log means on log contexts.

    ``logs`` is [buckets], ``means`` [resamples, buckets]. Empty buckets (NaN)
    are left out. NaN with fewer than two others, or where a mean is zero.
    """
    held = ~np.isnan(means)
    x = np.where(held, logs, 0.0)
    y = np.log(means, out=np.zeros_like(means), where=held & (means > 0))
    n = held.sum(axis=1)
    usable = (n >= 2) & ~(held & (means == 0)).any(axis=1)
    count = np.maximum(n, 1)
    x = np.where(held, x - (x.sum(axis=1) / count)[:, None], 0.0)
    top, bottom = (x * y).sum(axis=1), (x * x).sum(axis=1)
    slopes = np.divide(top, bottom, out=np.full_like(top, np.nan), where=usable & (bottom > 0))
    return np.asarray(slopes[:, None])
