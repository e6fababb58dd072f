"""Are tokens drawn as asked? (docs/methods.md, "Drawn tokens").

Each draw multiplies the evidence for every alternative by q/p; their average
is an e-value, and stays one whenever one looks or stops. The endpoint's p is
not quite the null's: each factor is divided by what honest rows make of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp
from scipy.stats import chi2

from logprob_drift.token_only.sampling_alternatives import (
    ALTERNATIVES,
    CURVE,
    ONE,
    REPEATED,
    ROOM,
    Alternative,
    Null,
)
from ringtrue.records import Interval, State
from ringtrue.stats import Values

ALARM = 1000.0  # e-value of one night
EXCLUDED = 0.01  # likelihood ratio against the null below which an alternative is excluded
LEAST_CUT = 0.05  # probability a cut has to take away before it must be excluded
LEVEL = 0.99  # of the temperature's interval
_FINE = 4001  # points at which the likelihood's curve is read


@dataclass(frozen=True, slots=True)
class Draw:
    """What one draw says of every alternative, in nats.

    ``evidence`` [alternatives] is log q/p less the discount, ``ratio``
    [alternatives] without it, ``curve`` [`CURVE`] the log-likelihood by
    temperature. ``expected`` [alternatives] is the mean of -``ratio`` of a
    draw as asked, ``taken`` [alternatives] the probability that an
    alternative takes away, and ``information`` that about the log temperature.
    """

    evidence: Values
    ratio: Values
    curve: Values
    expected: Values
    taken: Values
    information: float


def draw(null: Null, cell: int, before: int | None) -> Draw:
    """Return what a token in ``cell`` says; ``before`` is the cell of the last answer to the same prompt.

    ``before`` is ``None`` for a first answer, or where that token has no cell
    of its own.
    """
    again, again_expected, again_discount = _repeats(null, cell, before)
    ratio = np.append(null.q[:, cell] - null.p[cell], again)
    discount = np.append(null.discount, again_discount)
    p = np.exp(null.p)
    return Draw(
        evidence=ratio - discount,
        ratio=ratio,
        curve=null.curve[:, cell],
        expected=np.append(((null.p - null.q) * p).sum(axis=1), again_expected),
        taken=np.append(np.maximum(0.0, p - np.exp(null.q)).sum(axis=1), 0.0),
        information=information(null),
    )


def information(null: Null) -> float:
    """Return the Fisher information of one draw about the log of the temperature."""
    step = math.log(CURVE[ONE + 1] / CURVE[ONE - 1])
    score = (null.curve[ONE + 1] - null.curve[ONE - 1]) / step
    return float((np.exp(null.p) * score**2).sum())


def _repeats(null: Null, cell: int, before: int | None) -> tuple[float, float, float]:
    """Return log q/p, its negative expectation, and the discount of the alternative that repeats."""
    if before is None:
        return 0.0, 0.0, 0.0
    p = math.exp(null.p[before])
    other, same = math.log(1 - REPEATED), math.log(1 - REPEATED + REPEATED / p)
    honest = math.exp(float(null.honest[:, before].max()) - null.p[before]) if null.honest.size else 1.0
    discount = ROOM * math.log(max(1.0, 1 - REPEATED + REPEATED * honest))
    return same if cell == before else other, -(p * same + (1 - p) * other), discount


@dataclass(frozen=True, slots=True)
class DrawnNight:
    """What a night's draws show.

    ``log_e`` is the evidence against drawing as asked (nats), ``best`` the
    alternative that explains the draws best. ``temperature`` is the
    maximum-likelihood factor on the temperature asked for, ``interval`` its
    likelihood interval (a missing bound lies outside what was looked at), and
    ``detectable`` the smallest part by which it could have been off and be
    expected to alarm. ``open`` are the alternatives that have to be excluded
    and are not; ``more`` is how many draws as asked would exclude them on
    average, ``None`` where nothing is known of a draw.
    """

    state: State
    n: int
    log_e: float
    best: Alternative
    temperature: float | None
    interval: Interval | None
    detectable: float | None
    open: tuple[Alternative, ...]
    more: int | None


def judge(draws: Sequence[Draw], *, alarm: float = ALARM) -> DrawnNight:
    """Return what the draws show so far.

    CHANGED when the e-value reaches ``alarm``; an honest endpoint's does with
    a probability of at most 1 / ``alarm``, however often one looks, if its
    distribution is the null's, one of its honest rows or a mixture of them.
    OK when every alternative, cuts of less than `LEAST_CUT` left aside, is
    excluded: one that is true is excluded with a probability of at most
    `EXCLUDED`. Otherwise UNKNOWN.
    """
    if not draws:
        return DrawnNight(State.UNKNOWN, 0, 0.0, ALTERNATIVES[0], None, None, None, ALTERNATIVES, None)
    n = len(draws)
    evidence = np.sum([one.evidence for one in draws], axis=0)
    ratio = np.sum([one.ratio for one in draws], axis=0)
    log_e = float(logsumexp(evidence) - math.log(evidence.size))
    required = _required(np.mean([one.taken for one in draws], axis=0))
    still_open = required & (ratio > math.log(EXCLUDED))
    changed = log_e >= math.log(alarm)
    temperature, interval = _temperature(np.sum([one.curve for one in draws], axis=0))
    return DrawnNight(
        state=State.CHANGED if changed else State.UNKNOWN if still_open.any() else State.OK,
        n=n,
        log_e=log_e,
        best=ALTERNATIVES[int(evidence.argmax())],
        temperature=temperature,
        interval=interval,
        detectable=_detectable(float(np.sum([one.information for one in draws])), alarm),
        open=tuple(one for one, is_open in zip(ALTERNATIVES, still_open, strict=True) if is_open),
        more=_more(ratio, np.mean([one.expected for one in draws], axis=0), still_open),
    )


def _required(taken: Values) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    cuts = np.array([one.cuts for one in ALTERNATIVES])
    return ~cuts | (taken >= LEAST_CUT)


def _more(
    ratio: Values, expected: Values, still_open: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> int | None:
    """Return how many draws as asked bring every open alternative's ratio down to `EXCLUDED`, on average."""
    if not still_open.any():
        return 0
    if not bool((expected[still_open] > 0).all()):
        return None
    needed = (ratio - math.log(EXCLUDED))[still_open] / expected[still_open]
    return max(1, math.ceil(float(needed.max())))


def _temperature(curve: Values) -> tuple[float, Interval]:
    """Return where the likelihood is largest, and the factors that it does not exclude."""
    logs = np.linspace(math.log(CURVE[0]), math.log(CURVE[-1]), _FINE)
    likelihood = CubicSpline(np.log(CURVE), curve)(logs)
    inside = np.flatnonzero(likelihood >= likelihood.max() - chi2.ppf(LEVEL, 1) / 2)
    low = None if inside[0] == 0 else math.exp(logs[inside[0]])
    high = None if inside[-1] == _FINE - 1 else math.exp(logs[inside[-1]])
    return math.exp(logs[int(likelihood.argmax())]), Interval(low, high, LEVEL)


def _detectable(total: float, alarm: float) -> float | None:
    if total <= 0:
        return None
    return math.expm1(math.sqrt(2 * math.log(alarm * len(ALTERNATIVES)) / total))


@dataclass(frozen=True, slots=True)
class SeedPairs:
    """Pairs of answers to one prompt with one seed: how many are equal; ``log_e`` (nats) for the seed."""

    n: int
    equal: int
    log_e: float

    @property
    def honoured(self) -> bool | None:
        """Whether the seed is honoured; ``None`` where the pairs don't tell."""
        if self.log_e >= -math.log(EXCLUDED):
            return True
        return False if self.log_e <= math.log(EXCLUDED) else None


def seed_pairs(equal: Sequence[bool], collision: Sequence[float]) -> SeedPairs:
    """Judge pairs; ``collision`` is how probable equal tokens are without a seed, for each pair's prompt.

    The alternative repeats the token in 95 % of pairs: a server's batches can
    move a draw across a border. A seed that is not honoured is no fault:
    few servers promise it.

    Raises:
        ValueError: another number of chances than of pairs, or a chance outside (0, 1).
    """
    if len(equal) != len(collision) or not all(0 < chance < 1 for chance in collision):
        raise ValueError(f"{len(equal)} pairs beside chances {list(collision)}")
    logs = [
        math.log((0.95 + 0.05 * c) / c) if same else math.log(0.05)
        for same, c in zip(equal, collision, strict=True)
    ]
    return SeedPairs(len(equal), sum(equal), math.fsum(logs))
