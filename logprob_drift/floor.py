"""The noise floor: what the same statistic shows for an honest endpoint (docs/methods.md, "Noise floor")."""

from __future__ import annotations

import numpy as np

from logprob_drift.alignment import Aligned
from logprob_drift.divergence import diverge
from ringtrue.endpoint import LogprobRow


def as_served(row: LogprobRow, k: int) -> Aligned:
    """Return a full logprob row (shape [vocabulary], nats) as a server would list its ``k`` best.

    Ties are broken by token ID, so that the result depends on the row alone.
    """
    count = min(k, row.shape[0])
    best = np.argsort(-row, kind="stable")[:count]
    logprobs = row[best].astype(np.float64)
    return Aligned(
        cells=tuple((int(token_id),) for token_id in best),
        logprobs=tuple(float(value) for value in logprobs),
        unseen=float(np.clip(1.0 - np.exp(logprobs).sum(), 0.0, 1.0)),
    )


def floor_of(reference: LogprobRow, honest: Aligned, k: int) -> float:
    """Return an honest row's divergence from ``reference``, truncated to the endpoint's ``k`` (nats).

    ``honest`` may list more than ``k`` cells; the statistic of endpoint and
    floor must be the same one, so the rest becomes tail.
    """
    kept = honest.logprobs[:k]
    seen = float(np.exp(np.array(kept)).sum())
    return diverge(reference, Aligned(honest.cells[:k], kept, min(1.0, max(0.0, 1.0 - seen)))).kl
