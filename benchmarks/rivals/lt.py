"""Logprob tracking as published (arXiv 2512.03816): one prompt, one token, its top 20, 10 requests.

The statistic is the mean over tokens of the absolute difference of mean
logprobs, and a token that a row doesn't list gets that row's least value. The
test permutes requests; the live rule watches the statistic of each batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
PERMUTATIONS = 1000
SDS, NATS = 12.0, 1.0  # the live rule


def filled(rows: Values) -> Values:
    """Return rows [requests, tokens] in nats with each NaN, an unlisted token, at its row's least value."""
    return np.where(np.isnan(rows), np.nanmin(rows, axis=1, keepdims=True), rows)


def statistic(before: Values, after: Values) -> float:
    """Return the mean over tokens of |mean before - mean after| (nats); both are [requests, tokens]."""
    return float(np.abs(filled(before).mean(axis=0) - filled(after).mean(axis=0)).mean())


def p_value(before: Values, after: Values, rng: np.random.Generator, draws: int = PERMUTATIONS) -> float:
    """Return (1 + #{permuted >= seen}) / (draws + 1), permuting requests whichever batch they are from."""
    pool = filled(np.concatenate([before, after]))
    n, first = len(pool), len(before)
    order = rng.permuted(np.tile(np.arange(n), (draws, 1)), axis=1)
    signs = np.where(order < first, 1 / first, -1 / (n - first))
    permuted = np.abs(signs @ pool).mean(axis=1)
    # The labels as they are, by the same sums: ties must not be decided by rounding.
    seen = np.abs(np.where(np.arange(n) < first, 1 / first, -1 / (n - first)) @ pool).mean()
    return float((1 + np.count_nonzero(permuted >= seen - 1e-12)) / (draws + 1))


def live_alarms(series: Values, warm: int = 14) -> NDArray[np.bool_]:
    """Return where the live rule alarms on the statistic of each batch, shape [batches].

    Above the running mean of all batches before by 12 of their SDs, and above
    1 nat. ``warm`` batches come first: the paper starts with a history.
    """
    alarms = np.zeros(len(series), dtype=np.bool_)
    for now in range(warm, len(series)):
        past = series[:now]
        alarms[now] = series[now] > past.mean() + SDS * past.std(ddof=1) and series[now] > NATS
    return alarms
