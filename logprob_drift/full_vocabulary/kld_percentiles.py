"""Percentiles over positions, under resampling of whole sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringtrue.stats import Values, weighted_percentiles


class Percentiles:
    """Percentiles of the ``values`` of all positions, each with the sequence it belongs to.

    The values are sorted once; a resample only weighs them anew.
    """

    def __init__(self, values: Values, clusters: NDArray[np.int64], percents: Sequence[float]) -> None:
        order = np.argsort(values, kind="stable")
        self._ascending, self._clusters = values[order], clusters[order]
        self._percents = tuple(percents)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each percentile, in order: ``p99.9``, ``median``."""
        return tuple("median" if percent == 50 else f"p{percent:g}" for percent in self._percents)

    def of(self, counts: NDArray[np.int32]) -> dict[str, Values]:
        """Return each percentile, [resamples], where sequence j is drawn ``counts[:, j]`` times."""
        weights = np.take(counts, self._clusters, axis=1)
        fractions = [percent / 100 for percent in self._percents]
        found = weighted_percentiles(self._ascending, weights, fractions)
        return dict(zip(self.names, found.T, strict=True))

    def reach(self) -> dict[str, tuple[int, int]]:
        """Return how many sequences have a value at or below each percentile, and at or above it."""
        count = int(self._clusters.max()) + 1
        found = self.of(np.ones((1, count), dtype=np.int32))
        return {
            name: (
                np.unique(self._clusters[self._ascending <= float(value[0])]).size,
                np.unique(self._clusters[self._ascending >= float(value[0])]).size,
            )
            for name, value in found.items()
        }
