"""What a distribution becomes when tokens are drawn otherwise than asked (docs/methods.md, "Drawn tokens").

The null is a distribution over *cells*: tokens that can be named from an
answer, those that can't be told apart together, and one last cell for all the
rest. Every cell has a probability of at least `LEAST`, so that no single
token, rightly named or not, can decide anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from ringtrue.stats import Values

LEAST = 1e-3  # probability of a cell under the null
STRAY = 0.01  # share of draws that every alternative leaves to the null
REPEATED = 0.5  # share of draws that repeat the one before, where a cache or the seed is stuck
TIE = 0.25  # nats by which an endpoint's arithmetic may exchange the likeliest token for another
ROOM = 2.0  # times the honest rows' excess that the null allows for
_TOKENS = 512  # likeliest tokens that are held one by one

CURVE: Values = np.exp(np.linspace(-1.0, 1.0, 51))
"""Factors of the temperature at which the likelihood is known; the middle one is 1."""
ONE = CURVE.size // 2
TEMPERED = (0.5, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0)
_TOP_K = (5, 10, 20, 40, 50)
_TOP_P = (0.8, 0.9, 0.95)

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way of drawing otherwise; ``words`` say what is seen. ``cuts`` those that take tokens away."""

    name: str
    words: str
    cuts: bool = False


ALTERNATIVES = (
    *(
        Alternative(f"temperature_{factor:g}", f"as if the temperature were {factor:g} times what was asked")
        for factor in TEMPERED
    ),
    Alternative("greedy", "always the likeliest token: the temperature is ignored", cuts=True),
    Alternative("no_top", "the likeliest token is never drawn", cuts=True),
    *(Alternative(f"top_k_{k}", f"only the {k} likeliest tokens are drawn", cuts=True) for k in _TOP_K),
    *(
        Alternative(
            f"top_p_{share:g}",
            f"only the likeliest tokens that make up {share:.0%} of the probability are drawn",
            cuts=True,
        )
        for share in _TOP_P
    ),
    Alternative("repeats", "the answer before is given again whatever the seed: a cache, or a stuck seed"),
)
"""All that are looked for. The last is not a distribution by itself: it depends on the draw before."""

_FACTORS: Values = np.concatenate([CURVE, np.array(TEMPERED)])


@dataclass(frozen=True, slots=True)
class Head:
    """The likeliest tokens of a distribution one by one, and what the others add up to.

    ``ids`` [tokens] best first, ``logprobs`` [tokens] in nats, ``tail``
    [factors] the log of the sum of p^(1/T) over all other tokens.
    """

    ids: Tokens
    logprobs: Values
    tail: Values


@dataclass(frozen=True, slots=True)
class Null:
    """The distribution of a draw as asked, beside each alternative; logs of probabilities over cells.

    ``p`` [cells], ``q`` [alternatives but the last, cells], ``curve``
    [`CURVE`, cells], ``honest`` [rows, cells] what honest servers might draw
    from. ``discount`` [alternatives but the last] is `ROOM` times the largest
    log of an honest row's expectation of q/p, where that is above 0.
    """

    p: Values
    q: Values
    curve: Values
    honest: Values
    discount: Values

    @property
    def rest(self) -> int:
        """The cell of all tokens that have none of their own."""
        return self.p.size - 1


def head_of(row: NDArray[np.float32], groups: Tokens) -> Head:
    """Return the head of a full row (logprobs, [vocabulary], nats).

    ``groups`` [vocabulary] says which tokens look the same in an answer
    (-1: can't be named). Tokens of a group that may become a cell are all in
    the head, so that its probability is exact.
    """
    logprobs = row.astype(np.float64)
    masses = np.bincount(groups[groups >= 0], weights=np.exp(logprobs[groups >= 0]))
    kept = np.zeros(logprobs.size, dtype=np.bool_)
    kept[np.argpartition(-logprobs, min(_TOKENS, logprobs.size) - 1)[:_TOKENS]] = True
    kept |= (groups >= 0) & np.isin(groups, np.flatnonzero(masses >= LEAST / 2))
    ids = np.flatnonzero(kept)
    ids = ids[np.argsort(-logprobs[ids], kind="stable")]
    others = logprobs[~kept]
    return Head(ids.astype(np.int64), logprobs[ids], _tail(others))


def _tail(others: Values) -> Values:
    if not others.size or others.max() == -np.inf:
        return np.full(_FACTORS.size, -np.inf)
    top = float(others.max())
    return np.array([np.log(np.exp((others - top) / factor).sum()) + top / factor for factor in _FACTORS])


def temperature_information(row: NDArray[np.float32], groups: Tokens) -> float:
    """Return what a draw tells of the log temperature: the variance of log p that is left between cells.

    ``row`` and ``groups`` as for `head_of`. Nothing is left where no token can be named.
    """
    p = np.exp(row.astype(np.float64))
    p /= p.sum()  # of float32 logprobs: 1 only to seven digits
    surprise = xlogy(p, p)
    named = groups >= 0
    masses = np.bincount(groups[named], weights=p[named])
    sums = np.bincount(groups[named], weights=surprise[named])
    cells = masses >= LEAST
    masses = np.append(masses[cells], max(1 - masses[cells].sum(), 1e-12))
    sums = np.append(sums[cells], surprise.sum() - sums[cells].sum())
    return float((sums**2 / masses).sum() - surprise.sum() ** 2)


def with_listed(head: Head, listed: Sequence[Sequence[int]], logprobs: Values, unseen: float) -> Head:
    """Return the distribution that an endpoint itself states: its list, then ``head``'s tail, scaled.

    ``listed`` [tokens] are the IDs each entry stands for, best first, and
    ``logprobs`` theirs (nats); ``unseen`` is the probability outside the list.
    Entry i of the list is token i of the result.
    """
    own = np.array([token for entry in listed for token in entry], dtype=np.int64)
    other = ~np.isin(head.ids, own)
    total = np.logaddexp(logsumexp(head.logprobs[other]) if other.any() else -np.inf, head.tail[ONE])
    scale = np.log(max(unseen, LEAST / 10)) - total
    first = np.array([entry[0] for entry in listed], dtype=np.int64)
    return Head(
        np.concatenate([first, head.ids[other]]),
        np.concatenate([logprobs, head.logprobs[other] + scale]),
        head.tail + scale / _FACTORS,
    )


def null_of(head: Head, groups: Tokens, honest: Sequence[NDArray[np.float32]] = ()) -> tuple[Null, Tokens]:
    """Return the null of one prompt, and the cell of each token of ``head`` [tokens].

    ``groups`` [tokens of the head]: which of them look the same, -1 for those
    that can't be named. ``honest`` are full rows (logprobs, [vocabulary]) as
    honest servers would compute them, for the same prompt.
    """
    cell, cells = _cells(np.exp(_normalised(head)), groups)
    member = np.zeros((cell.size + 1, cells))
    member[np.arange(cell.size), cell] = 1.0
    member[-1, -1] = 1.0
    spread = _cell_logs(np.column_stack([head.logprobs / _FACTORS[:, None], head.tail]), member)
    p = spread[ONE]
    cuts = _cuts(head)
    cut = _cell_logs(np.log(cuts, where=cuts > 0, out=np.full(cuts.shape, -np.inf)), member)
    q = np.logaddexp(np.log1p(-STRAY) + np.vstack([spread[CURVE.size :], cut]), np.log(STRAY) + p)
    rows = np.array([_honest_cells(row, head.ids, member) for row in honest]).reshape(len(honest), cells)
    return Null(p, q, spread[: CURVE.size], rows, _discount(p, q, rows)), cell


def _normalised(head: Head) -> Values:
    logs = np.append(head.logprobs, head.tail[ONE])
    normalised: Values = logs - logsumexp(logs)
    return normalised


def _cells(masses: Values, groups: Tokens) -> tuple[Tokens, int]:
    """Number the groups of at least `LEAST` by their mass, and let the rest have at least as much."""
    total = (
        np.bincount(groups[groups >= 0], weights=masses[:-1][groups >= 0])
        if (groups >= 0).any()
        else masses[:0]
    )
    order = np.argsort(-total, kind="stable")
    order = order[total[order] >= LEAST]
    while order.size and masses.sum() - total[order].sum() < LEAST:
        order = order[:-1]
    number = np.full(total.size + 1, order.size, dtype=np.int64)  # the last is that of group -1
    number[order] = np.arange(order.size)
    return number[groups], order.size + 1


def _cuts(head: Head) -> Values:
    """Return what each cut leaves, [cuts, tokens and tail] probabilities, in the order of `ALTERNATIVES`."""
    p = np.exp(_normalised(head))
    rank = np.arange(p.size)
    before = np.cumsum(p) - p
    # Any of the tokens that are nearly tied may be the likeliest to the endpoint.
    tied = (rank < p.size - 1) & (p >= p[0] * np.exp(-TIE))
    rows = [p * tied, np.where(tied, p * (1 - 1 / tied.sum()), p)]
    rows += [p * ((rank < k) & (rank < p.size - 1)) for k in _TOP_K]
    for share in _TOP_P:
        kept = p * (before < share)
        # Where the border lies among the tokens that are not held one by one, it takes a part of them.
        kept[-1] = min(p[-1], max(0.0, share - before[-1]))
        rows.append(kept)
    return np.array(rows)


def _cell_logs(logs: Values, member: Values) -> Values:
    """Return normalised logs over cells, [rows, cells], of logs over tokens and tail."""
    logs = logs - logs.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        summed = np.log(np.exp(logs) @ member)
    normalised: Values = summed - logsumexp(summed, axis=1, keepdims=True)
    return normalised


def _honest_cells(row: NDArray[np.float32], ids: Tokens, member: Values) -> Values:
    p = np.exp(row.astype(np.float64))
    masses: Values = np.append(p[ids], max(0.0, 1.0 - p[ids].sum())) @ member
    logs: Values = np.log(masses / masses.sum())
    return logs


def _discount(p: Values, q: Values, honest: Values) -> Values:
    if not honest.shape[0]:
        return np.zeros(q.shape[0])
    expected = logsumexp(honest[:, None, :] + (q - p)[None, :, :], axis=2)
    discount: Values = ROOM * np.maximum(0.0, expected.max(axis=0))
    return discount
