"""How far an observed top-k list lies from the reference, with bounds (docs/methods.md, "Divergence")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alignment import Aligned, Defect
from ringtrue.endpoint import LogprobRow

RESOLUTION = 1e-6  # the unseen probability below which float32 logprobs say nothing

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Divergence:
    """One row against the reference P; Q is what was observed. All divergences in nats.

    ``kl`` is KL(P||Q) on the cells and one tail bucket, a lower bound of the
    true value; ``reverse_low`` and ``reverse_high`` enclose KL(Q||P).
    ``unseen`` is Q's probability outside the cells, ``js`` and ``tv`` are
    Jensen-Shannon divergence and total variation on the same partition,
    ``top1`` says whether both rank the same token first, ``delta_p`` is Q - P
    of the reference's first token (``None`` if Q did not list it), and
    ``rank`` the reference's rank of Q's first token (0 is best).
    """

    kl: float
    reverse_low: float
    reverse_high: float
    unseen: float
    js: float
    tv: float
    top1: bool
    delta_p: float | None
    rank: int
    k: int


def diverge(reference: LogprobRow, observed: Aligned) -> Divergence:
    """Return how far ``observed`` lies from ``reference`` (shape [vocabulary], nats).

    Sums run in float64. An unseen probability below `RESOLUTION` is taken as
    that: rounding must not make a divergence infinite, and moving mass into
    the tail can only lower the bound.
    """
    p_all = np.exp(reference.astype(np.float64))
    p_all /= p_all.sum()
    p = np.array([p_all[list(cell)].sum() for cell in observed.cells])
    q = np.exp(np.array(observed.logprobs, dtype=np.float64))
    head = np.zeros(p_all.shape[0], dtype=bool)
    head[[token_id for cell in observed.cells for token_id in cell]] = True
    tail = p_all[~head]
    p_cells = _with_tail(p, float(tail.sum()))
    q_cells = _with_tail(q, 1.0 - float(q.sum()))
    middle = (p_cells + q_cells) / 2
    best = int(np.argmax(p_all))
    listed = [index for index, cell in enumerate(observed.cells) if best in cell]
    # An entry that could not be named sits in the tail and may be likelier than the k-th.
    cap = 1.0 if Defect.UNIDENTIFIED in observed.dropped else float(q[-1])
    low, high = _reverse_bounds(p, q, tail, observed.unseen, cap)
    return Divergence(
        kl=max(0.0, _kl(p_cells, q_cells)),
        reverse_low=max(0.0, low),
        reverse_high=max(0.0, high),
        unseen=observed.unseen,
        js=max(0.0, (_kl(p_cells, middle) + _kl(q_cells, middle)) / 2),
        tv=float(np.abs(p_cells - q_cells).sum() / 2),
        top1=best in observed.cells[0],
        delta_p=float(q[listed[0]] - p[listed[0]]) if listed else None,
        rank=int((p_all > p_all[list(observed.cells[0])].max()).sum()),
        k=observed.k,
    )


def _with_tail(head: _Floats, tail: float) -> _Floats:
    return np.append(head, max(tail, RESOLUTION))


def _kl(p: _Floats, q: _Floats) -> float:
    held = p > 0
    return float((p[held] * np.log(p[held] / q[held])).sum())


def _reverse_bounds(p: _Floats, q: _Floats, tail: _Floats, unseen: float, cap: float) -> tuple[float, float]:
    """Return bounds of KL(Q||P) over every way to spread ``unseen`` on the tail, at most ``cap`` a token."""
    floor = np.finfo(np.float64).tiny
    head = _kl(q, np.maximum(p, floor))
    if unseen <= RESOLUTION or tail.size == 0:
        return head, head
    ascending = np.maximum(np.sort(tail), floor)
    if cap * tail.size <= unseen:
        # By rounding, the tail can't hold the unseen mass under the cap: only the bucket's own
        # bound is safe below, and all mass on the least likely token above.
        bucket = unseen * np.log(unseen / ascending.sum())
        return head + float(bucket), head + float(unseen * np.log(unseen / ascending[0]))
    return head + _filled(ascending, unseen, cap), head + _least_likely(ascending, unseen, cap)


def _filled(ascending: _Floats, mass: float, cap: float) -> float:
    """Return the least tail divergence: q proportional to p, capped (water filling)."""
    descending = ascending[::-1]
    below = np.append(np.cumsum(descending[::-1])[::-1], 0.0)  # p mass from index i on
    for capped in range(descending.size):
        scale = (mass - capped * cap) / below[capped]
        if scale * descending[capped] <= cap:
            q = np.concatenate([np.full(capped, cap), scale * descending[capped:]])
            return _kl(q, descending)
    return _kl(np.full(descending.size, cap), descending)


def _least_likely(ascending: _Floats, mass: float, cap: float) -> float:
    """Return the greatest tail divergence: the cap on the least likely tokens until the mass is spent."""
    full = int(mass // cap)
    q = np.zeros(ascending.size)
    q[:full] = cap
    q[full] = mass - full * cap
    return _kl(q, ascending)
