"""The statistic of ``divergence.diverge`` for many rows at once, from the listed tokens alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logprob_drift.divergence import RESOLUTION

_Logprobs = NDArray[np.float32]


def truncated_kl(reference: _Logprobs, observed: _Logprobs) -> NDArray[np.float64]:
    """Return KL(P||Q) [rows] in nats on the listed tokens and one tail bucket, a lower bound of the true one.

    ``observed`` [rows, k] are the logprobs of Q's k likeliest tokens, and
    ``reference`` those of the same tokens under P. Sums run in float64;
    a tail below `divergence.RESOLUTION` is taken as that.

    Raises:
        ValueError: when the shapes differ.
    """
    if reference.shape != observed.shape:
        raise ValueError(f"{reference.shape} logprobs beside {observed.shape}")
    p, q = reference.astype(np.float64), observed.astype(np.float64)
    held = np.isfinite(p)  # what P excludes adds nothing
    head = (np.exp(p) * np.subtract(p, q, where=held, out=np.zeros_like(p))).sum(axis=1)
    p_tail, q_tail = _tail(p), _tail(q)
    kl: NDArray[np.float64] = np.maximum(0.0, head + p_tail * np.log(p_tail / q_tail))
    return kl


def _tail(logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    tail: NDArray[np.float64] = np.maximum(1.0 - np.exp(logprobs).sum(axis=1), RESOLUTION)
    return tail
