"""When did a rate change? Clustered Bernoulli evidence over candidate changes (docs/methods.md, "Alarms").

Counts of a night are events in trials: broken calls in calls, capped answers
in answers. For each candidate change, a Bayes factor holds "another rate since
then" against "one rate throughout", with a Beta(1/2, 1/2) prior on each.

How it stays valid. For independent trials the factor's expectation is 1,
averaged over that prior. Trials of one night resemble each other, so every
count is first divided by its design effect 1 + (m - 1) rho. A product of
e-values raised to the power 1/d is an e-value when the trials fall into d
classes of which each is independent inside (Hölder's inequality); the design
effect stands for d. rho is estimated inside the nights before and inside those
after the candidate, so that a change does not pass for correlation, nor a few
bursts for a change, and it is floored until 14 nights exist. Last, A must be
reached without the most extreme night after the change. What remains is
simulated in ``benchmarks/fleet_years.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from ringtrue.alarm_nights import AlarmNights

Values = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

CORRELATION_FLOOR = 0.05  # correlation within a night that is assumed at least
SETTLED = 14  # nights before the change from which on the estimate stands alone
_PRIOR = 0.5
_LARGEST = 700.0  # log evidence beyond which only its size is lost


@dataclass(frozen=True, slots=True)
class RateChanges(AlarmNights):
    """What each night said of each stream's rate; every array has shape [streams, nights].

    ``evidence`` and ``guarded`` are M with all nights and without the most
    extreme one after the change; NaN on a night that is not judged (no trials,
    or too few nights before it). ``alarm`` stands from the first night on
    which both reach the threshold. ``start`` is the index of the night on
    which the likeliest change begins, -1 where not judged. ``before`` is the
    rate up to that change and ``after`` the one since, NaN where not judged.
    """

    evidence: Values
    guarded: Values
    alarm: Flags
    start: Indices
    before: Values
    after: Values


def rate_changes(
    events: Values,
    trials: Values,
    threshold: float,
    *,
    baseline: int = 14,
    window: int = 30,
    accepted: Indices | None = None,
) -> RateChanges:
    """Return evidence and alarms for counts of shape [streams, nights].

    A night of zero trials was not measured. A night's result depends on
    nothing later. A change needs ``baseline`` measured nights before it and
    begins at most ``window`` nights back. ``accepted`` is the index of the
    night from which on a stream counts, as in
    `logprob_drift.alarms.night_detector.detect`.

    Raises:
        ValueError: counts that are negative or not finite, or more events than trials.
    """
    if not bool(np.all((events >= 0) & (events <= trials) & np.isfinite(trials))):
        raise ValueError("events must lie between 0 and the number of trials")
    if accepted is not None:
        counts = np.arange(events.shape[1]) >= accepted[:, None]
        events, trials = np.where(counts, events, 0.0), np.where(counts, trials, 0.0)
    night = _Counts.of(events.astype(np.float64), trials.astype(np.float64))
    sums = _Counts(*(_running(column) for column in night))
    shape = events.shape
    evidence, guarded = np.zeros(shape), np.zeros(shape)
    best, start = np.full(shape, -np.inf), np.full(shape, -1, dtype=np.int64)
    before, after = np.full(shape, np.nan), np.full(shape, np.nan)
    high, low = _Extreme(night, 1.0), _Extreme(night, -1.0)
    for lag in range(1, min(window, shape[1] - baseline) + 1):
        now = np.s_[:, baseline + lag - 1 :]
        high.reach(lag)
        low.reach(lag)
        old = sums.at(np.s_[:, baseline : shape[1] - lag + 1])
        new = sums.at(np.s_[:, baseline + lag :]).less(old)
        allowed = (old.nights >= baseline) & (trials[:, baseline : shape[1] - lag + 1] > 0)
        whole = np.where(allowed, _log_factor(old, new), -np.inf)
        evidence[now] += np.exp(whole)
        rate = old.events / np.maximum(old.trials, 1)
        up, down = high.night.at(now), low.night.at(now)
        upper = up.rate - rate > rate - down.rate
        rest = new.less(_Counts(*(np.where(upper, a, b) for a, b in zip(up, down, strict=True))))
        guarded[now] += np.where(allowed & (rest.nights > 0), np.exp(_log_factor(old, rest)), 0.0)
        better = whole > best[now]
        for kept, value in ((best, whole), (before, rate), (after, new.rate)):
            kept[now] = np.where(better, value, kept[now])
        start[now] = np.where(better, np.arange(baseline, shape[1] - lag + 1), start[now])
    judged = (trials > 0) & (start >= 0)
    reached = judged & (evidence >= threshold) & (guarded >= threshold)
    hidden = np.where(judged, 0.0, np.nan)
    return RateChanges(
        evidence=evidence + hidden,
        guarded=guarded + hidden,
        alarm=np.logical_or.accumulate(reached, axis=1),
        start=np.where(judged, start, -1),
        before=before + hidden,
        after=after + hidden,
    )


def detectable_rate(
    rate: float, before: float, after: float, threshold: float, *, design_effect: float = 1.0
) -> float | None:
    """Return the smallest higher rate whose expected counts reach the threshold, or ``None`` if none does.

    ``before`` and ``after`` are trials on either side of the change; each is
    divided by ``design_effect``, 1 + (trials a night - 1) rho.
    """
    n1, n2 = before / design_effect, after / design_effect

    def evidence(other: float) -> float:
        k1, m1, k2, m2 = np.array([rate * n1, n1, other * n2, n2])
        return float(_beta_factor(k1, m1, k2, m2))

    least, most = rate, 1.0
    if evidence(most) < np.log(threshold):
        return None
    while most - least > 1e-6:
        middle = (least + most) / 2
        least, most = (least, middle) if evidence(middle) >= np.log(threshold) else (middle, most)
    return most


class _Counts(NamedTuple):
    """Sums over nights: events, trials, squared trials, events squared by trials, nights with trials."""

    events: Values
    trials: Values
    squared: Values
    spread: Values
    nights: Values

    @classmethod
    def of(cls, events: Values, trials: Values) -> _Counts:
        """Return the counts of single nights."""
        return cls(
            events, trials, trials**2, events**2 / np.maximum(trials, 1), (trials > 0).astype(np.float64)
        )

    @property
    def rate(self) -> Values:
        """Events by trials, 0 where there are no trials."""
        return np.asarray(self.events / np.maximum(self.trials, 1))

    def at(self, where: tuple[slice, ...]) -> _Counts:
        """Return the counts at some streams and nights."""
        return _Counts(*(column[where] for column in self))

    def less(self, other: _Counts) -> _Counts:
        """Return the counts without those of ``other``."""
        return _Counts(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class _Extreme:
    """The night with the highest (sign 1) or lowest (sign -1) rate in a window that grows backwards."""

    def __init__(self, nights: _Counts, sign: float) -> None:
        self._all, self._sign = nights, sign
        self._keys = np.where(nights.trials > 0, sign * nights.rate, -np.inf)
        self._key = np.full_like(self._keys, -np.inf)
        self.night = _Counts(*(np.zeros_like(column) for column in nights))

    def reach(self, lag: int) -> None:
        """Take in the night ``lag - 1`` nights back."""
        now, then = np.s_[:, lag - 1 :], np.s_[:, : self._keys.shape[1] - lag + 1]
        further = self._keys[then] > self._key[now]
        self._key[now] = np.where(further, self._keys[then], self._key[now])
        for mine, theirs in zip(self.night, self._all, strict=True):
            mine[now] = np.where(further, theirs[then], mine[now])


def _log_factor(old: _Counts, new: _Counts) -> Values:
    rho = _correlation(old, new)
    one, other = _design_effect(old, rho), _design_effect(new, rho)
    factor = _beta_factor(old.events / one, old.trials / one, new.events / other, new.trials / other)
    return np.asarray(np.minimum(factor, _LARGEST))


def _beta_factor(k1: Values, n1: Values, k2: Values, n2: Values) -> Values:
    def evidence(k: Values, n: Values) -> Values:
        return np.asarray(betaln(_PRIOR + k, _PRIOR + n - k))

    return np.asarray(
        evidence(k1, n1) + evidence(k2, n2) - evidence(k1 + k2, n1 + n2) - betaln(_PRIOR, _PRIOR)
    )


def _design_effect(counts: _Counts, rho: Values) -> Values:
    """Return by how much correlation inflates the variance of a count over nights of any sizes."""
    size = counts.squared / np.maximum(counts.trials, 1)
    return np.asarray(1 + np.maximum(size - 1, 0) * rho)


def _correlation(old: _Counts, new: _Counts) -> Values:
    """Return the correlation of trials within a night, by moments, inside each side of the change."""
    trials = np.maximum(old.trials + new.trials, 1)
    nights = np.maximum(old.nights + new.nights - 2, 1)
    binomial = (old.events * (1 - old.rate) + new.events * (1 - new.rate)) / trials
    spread = sum(np.maximum(side.spread - side.events * side.rate, 0) for side in (old, new))
    ratio = np.where(binomial > 0, spread / np.where(binomial > 0, binomial, 1) / nights, 0.0)
    size = trials / np.maximum(old.nights + new.nights, 1)
    rho = np.where(size > 1, (ratio - 1) / np.where(size > 1, size - 1, 1), 0.0)
    return np.asarray(np.clip(rho, np.where(old.nights < SETTLED, CORRELATION_FLOOR, 0.0), 1.0))


def _running(column: Values) -> Values:
    return np.concatenate([np.zeros((column.shape[0], 1)), np.cumsum(column, axis=1)], axis=1)
