"""Comparisons made by hand or by chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from logprob_drift.full_vocabulary.positions import PositionDivergences


def positions(
    kl: ArrayLike,
    *,
    sequence: ArrayLike | None = None,
    context: ArrayLike | None = None,
    logprob_p: ArrayLike | None = None,
    logprob_q: ArrayLike | None = None,
    top1: ArrayLike | None = None,
) -> PositionDivergences:
    """Return a comparison of which only what is given matters; one sequence unless said otherwise."""
    values = np.asarray(kl, dtype=np.float64)
    count = values.shape[0]
    return PositionDivergences(
        sequence=np.zeros(count, dtype=np.int64) if sequence is None else np.asarray(sequence),
        context=np.arange(1, count + 1) if context is None else np.asarray(context),
        kl=values,
        reverse_kl=values,
        js=values / 4,
        top1=np.ones(count, dtype=bool) if top1 is None else np.asarray(top1),
        logprob_p=np.full(count, -1.0) if logprob_p is None else np.asarray(logprob_p, dtype=np.float64),
        logprob_q=np.full(count, -1.0) if logprob_q is None else np.asarray(logprob_q, dtype=np.float64),
    )


def random_positions(
    rng: np.random.Generator, lengths: list[int], *, spread: float = 0.0
) -> PositionDivergences:
    """Return sequences of so many positions, each with an effect of its own that varies by ``spread``."""
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    total = sequence.shape[0]
    effect = spread * rng.standard_normal(len(lengths))[sequence]
    logprob_p = -rng.exponential(2.0, total)
    return positions(
        np.exp(-3 + effect + rng.standard_normal(total)),
        sequence=sequence,
        context=np.concatenate([np.arange(1, length + 1) for length in lengths]),
        logprob_p=logprob_p,
        logprob_q=np.minimum(0.0, logprob_p + 0.2 * rng.standard_normal(total)),
        top1=rng.random(total) < 0.9,
    )
