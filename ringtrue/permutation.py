"""Permutation of units that are independent: nights, prompts or sessions, never requests of one night."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_ROUNDING = 1e-9  # of a statistic; equal sums differ by so much in floating point


def permutation_p(before: Values, after: Values, rng: np.random.Generator, resamples: int = 999) -> Values:
    """Return the two-sided p-value of each stream's difference of means, [streams], in (0, 1].

    ``before`` is [streams, n1] and ``after`` [streams, n2], in units that
    could change places if nothing had changed. p is (1 + the number of
    permutations at least as extreme) / (resamples + 1), so it is never 0. All
    streams share the permutations drawn.
    """
    pooled = np.concatenate([before, after], axis=1)
    centred = pooled - pooled.mean(axis=1, keepdims=True)
    n1, n2 = before.shape[1], after.shape[1]
    seen = np.abs(centred[:, n1:].sum(axis=1))  # the difference of means, up to a constant
    labels = np.zeros((resamples, n1 + n2))
    labels[:, n1:] = 1.0
    drawn = np.abs(centred @ rng.permuted(labels, axis=1).T)
    scale = np.abs(centred).sum(axis=1)
    reached = drawn >= (seen - _ROUNDING * scale)[:, None]
    return np.asarray((1 + reached.sum(axis=1)) / (resamples + 1))
