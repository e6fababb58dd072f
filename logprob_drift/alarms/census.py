"""The numeric states that an endpoint shows (docs/methods.md, "Census").

Asked for the same prompt, a deterministic stack gives one of a few logprob
vectors, bit for bit: one for each kernel, batch size or machine. A new one
means that the stack changed, not that it became worse.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ringtrue.records import Severity
from ringtrue.stats import Values

DECIMALS = 4  # nats; finer than any change of kernel, coarser than how servers print
NOTICE = 1000.0  # e-value at which a new state is reported: a notice, not an alarm
_NEW = 0.5  # after a change: share of the states not seen since then that are new altogether


def state_of(logprobs: Values, tokens: Sequence[str | int] = (), *, decimals: int = DECIMALS) -> str:
    """Return the state (16 hex digits) of one request: a hash of its rounded logprobs (nats, [k]) and tokens.

    Raises:
        ValueError: a logprob is NaN.
    """
    if bool(np.isnan(logprobs).any()):
        raise ValueError("a logprob is not a number")
    rounded = np.round(np.asarray(logprobs, dtype=np.float64), decimals) + 0.0  # no -0.0
    digest = hashlib.sha256(rounded.astype("<f8").tobytes())
    for token in tokens:
        digest.update(f"\x00{token!r}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Census:
    """The states of requests in order, held against a baseline.

    ``e_values`` [requests] is the Dirichlet e-process summed over starts; the
    first of them at the notice level is ``noticed`` (a request's number), and
    ``since`` the start that explains it best. ``new`` are the states after the
    baseline that it did not hold, in order. ``share_new`` is the share of new
    states expected of an honest endpoint, by the baseline's own singletons.
    """

    e_values: Values
    noticed: int | None
    since: int | None
    new: tuple[Hashable, ...]
    share_new: float


def census(
    baseline: Sequence[Hashable], requests: Sequence[Hashable], *, notice: float = NOTICE, window: int = 30
) -> Census | None:
    """Hold the states of ``requests`` against those of ``baseline``; ``None`` with fewer than 8 of these.

    Null: states follow a Dirichlet process that began with the baseline; its
    concentration is 1 + the number of states seen there once, so that an
    endpoint whose states never repeat (continuous batching) is never noticed.
    Alternative: a Dirichlet process of concentration 1 begins afresh with a
    state never seen before. Each factor's expectation under the null is at
    most 1, on average over the Dirichlet prior, so that at an honest endpoint
    a notice comes no sooner than after ``notice`` requests on average.
    Requests of one night may share a state by routing, which is why this is a
    notice and never an alarm by itself. The last ``window`` first appearances
    of a state are the candidate starts, and the evidence is summed over them.
    """
    if len(baseline) < 8:
        return None
    counts = Counter(baseline)
    concentration = 1.0 + sum(count == 1 for count in counts.values())
    known = dict(counts)
    first = len(baseline)
    starts: list[_Start] = []
    e_values = np.zeros(len(requests))
    noticed = since = None
    for at, state in enumerate(requests):
        seen = counts[state]
        null = (seen if seen else concentration) / (first + at + concentration)
        if not seen:  # a change begins with a new state, so the others are no starts
            starts = [*starts[-(window - 1) :], _Start(at)]
        for start in starts:
            start.add(state, null, known.get(state, 0) / first, fresh=not seen)
        counts[state] += 1
        e_values[at] = sum(start.product for start in starts)
        if noticed is None and e_values[at] >= notice:
            noticed, since = at, max(starts, key=lambda start: start.product).at
    new = tuple(dict.fromkeys(state for state in requests if state not in known))
    return Census(e_values, noticed, since, new, concentration / (first + concentration))


class _Start:
    """A Dirichlet process that begins at one request, and its likelihood over the null's."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.product = 1.0
        self._counts: Counter[Hashable] = Counter()
        self._total = 0

    def add(self, state: Hashable, null: float, old_share: float, *, fresh: bool) -> None:
        if self._total:
            base = _NEW if fresh else (1 - _NEW) * old_share
            self.product *= (self._counts[state] + base) / (self._total + 1) / null
        else:
            self.product = 1 / null
        self._counts[state] += 1
        self._total += 1


def nearest(vector: Values, known: Values) -> float:
    """Return the least mean |difference| (nats) of one logprob vector [k] to the known states' [states, k].

    Raises:
        ValueError: no known state, or another k.
    """
    if known.ndim != 2 or known.shape[0] == 0 or known.shape[1] != vector.shape[0]:
        raise ValueError(f"a vector of {vector.shape} beside states of {known.shape}")
    return float(np.abs(known - vector).mean(axis=1).min())


def severity(distance: float, floor: float | None) -> Severity:
    """Return how loudly a new state speaks: ``info`` within the floor (nats), ``warn`` beyond or without one.

    ``floor`` is the largest distance that an honest server's own states lie
    apart. A new state alone never fails: it says nothing of quality.
    """
    return Severity.INFO if floor is not None and distance <= floor else Severity.WARN
