"""Is a gross fault in every session, or only in some? (docs/methods.md, "Sessions")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logprob_drift.context_curve import Row
from logprob_drift.night import FEW_NEED, RATIO


def sessions_alike(rows: Sequence[Row], gross: float) -> bool | None:
    """Return whether the sessions agree about a fault beyond ``gross`` nats.

    ``False`` (a mixture): every session that can be judged is either clean
    (mean D within the ratio of mean F, no prompt gross) or gross at most of
    its prompts, and there are both kinds. ``True``: every one of at least two
    is gross. ``None``: the fault is not gross, or too few sessions have
    `FEW_NEED` prompts.
    """
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        if row.session is not None:
            grouped.setdefault(row.session, []).append(row)
    kinds = [_kind(group, gross) for group in grouped.values() if len(group) >= FEW_NEED]
    if len(kinds) < 2 or None in kinds:
        return None
    return len(set(kinds)) == 1 if "gross" in kinds else None


def _kind(group: Sequence[Row], gross: float) -> str | None:
    d = np.array([row.d for row in group])
    f = np.array([row.f for row in group])
    if float((d > gross).mean()) > 0.5:
        return "gross"
    if not bool((d > gross).any()) and float(d.mean()) <= RATIO * float(f.mean()):
        return "clean"
    return None
