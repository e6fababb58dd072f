"""Is a gross fault in every session, or only in some? (docs/methods.md, "Sessions")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logprob_drift.context_curve import Row
from logprob_drift.night import FEW_NEED, RATIO


def sessions_alike(rows: Sequence[Row], gross: float) -> bool | None:
    """Return whether the sessions agree about a fault beyond ``gross`` nats.

    ``False`` (a mixture): every session that can be judged is gross either at
    most of its prompts or at none, there are both kinds, and those at none
    together lie within the ratio of the floor. One of them alone does not have
    to: over 8 prompts an honest mean D can be twice the mean F. ``True``:
    every one of at least two is gross. ``None``: the fault is not gross, or
    too few sessions have `FEW_NEED` prompts.
    """
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        if row.session is not None:
            grouped.setdefault(row.session, []).append(row)
    judged = [group for group in grouped.values() if len(group) >= FEW_NEED]
    shares = [float(np.mean([row.d > gross for row in group])) for group in judged]
    if len(judged) < 2 or max(shares) == 0 or any(0 < share <= 0.5 for share in shares):
        return None
    spared = [row for group, share in zip(judged, shares, strict=True) if share == 0 for row in group]
    if not spared:
        return True
    return False if _within_floor(spared) else None


def _within_floor(rows: Sequence[Row]) -> bool:
    return sum(row.d for row in rows) <= RATIO * sum(row.f for row in rows)
