"""Rates of a night with their intervals, what they mean over many steps, and what a series of them says.

(docs/methods.md, "Rates".) The events are failures of one kind: a broken tool
call, a leaked marker, an empty answer, a loop, foreign characters, an answer
cut at the cap. When a rate changed is decided by `ringtrue.rate_change`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringtrue.rate_change import CORRELATION_FLOOR, RateChanges, detectable_rate, rate_changes
from ringtrue.records import Interval, State
from ringtrue.stats import Values, wilson

_WINDOW = 30  # nights that a change may lie back


@dataclass(frozen=True, slots=True)
class Count:
    """``events`` among ``n`` answers; ``n`` is 0 where none was measured."""

    events: int
    n: int


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with its Wilson interval; both are ``None`` for no trials: that is not a rate of 0."""

    value: float | None
    interval: Interval | None
    n: int


def rate_of(count: Count, level: float = 0.95) -> Rate:
    """Return the rate of one night's count.

    The interval takes answers as independent. Those of one night resemble each
    other, so it describes these answers; changes between nights are judged on
    the series alone.

    Raises:
        ValueError: events outside [0, n].
    """
    interval = wilson(count.events, count.n, level)
    return Rate(count.events / count.n if count.n else None, interval, count.n)


def compounded(success: Rate, steps: int) -> Rate:
    """Return the rate at which ``steps`` steps in a row succeed, p^steps, with its interval.

    The interval is exact as that of p is, since the power is monotone. Steps
    are taken as independent with one p: 0.9 over 15 steps is 0.21.

    Raises:
        ValueError: fewer than 1 step.
    """
    if steps < 1:
        raise ValueError(f"{steps} steps")
    if success.value is None:
        return success
    interval = success.interval
    if interval is not None:
        low = None if interval.low is None else interval.low**steps
        high = None if interval.high is None else interval.high**steps
        interval = Interval(low, high, interval.level)
    return Rate(success.value**steps, interval, success.n)


def count_columns(nights: Sequence[Sequence[Count | None]]) -> tuple[Values, Values]:
    """Return events and trials, [streams, nights], for `rate_changes`; ``None``: not measured."""
    events = np.array([[0 if c is None else c.events for c in stream] for stream in nights], dtype=np.float64)
    trials = np.array([[0 if c is None else c.n for c in stream] for stream in nights], dtype=np.float64)
    return events, trials


@dataclass(frozen=True, slots=True)
class RateNight:
    """What a stream of counts says as of its last night.

    ``rate`` is tonight's. ``before`` and ``after`` are the rates on the two
    sides of the likeliest change and ``since`` the index of its first night,
    ``None`` unless in alarm. ``e_value`` is the evidence, summed over starts.
    ``detectable`` is the nearest rate that this many nights after a change would
    have shown: a higher one, or a lower one where the rate is above 1/2.
    """

    state: State
    rate: Rate
    before: float | None
    after: float | None
    since: int | None
    e_value: float | None
    detectable: float | None
    reason: str


def judge_rates(
    nights: Sequence[Count | None], threshold: float, *, failures: bool = True, baseline: int = 14
) -> RateNight:
    """Judge one stream of nightly counts by its own past.

    In alarm: WORSE when the events are ``failures`` and became more frequent,
    else CHANGED. Expected nights between false alarms: at least ``threshold``
    under the assumptions of `ringtrue.rate_change`. Too few nights, or none
    tonight: UNKNOWN with the reason.
    """
    events, trials = count_columns([nights])
    tonight = (nights[-1] if nights else None) or Count(0, 0)
    rate, measured = rate_of(tonight), int((trials > 0).sum())
    if measured <= baseline:
        reason = f"{measured} of {baseline + 1} nights measured: a change needs {baseline} nights before it"
        return RateNight(State.UNKNOWN, rate, None, None, None, None, None, reason)
    found = rate_changes(events, trials, threshold, baseline=baseline)
    if bool(found.alarm[0, -1]):
        return _in_alarm(found, rate, failures=failures)
    if tonight.n == 0:
        reason = "nothing was measured tonight"
        return RateNight(State.UNKNOWN, rate, None, None, None, None, None, reason)
    detectable = _detectable(events[0], trials[0], threshold, baseline)
    reason = "no change of the rate"
    if detectable is None:
        reason += "; so few answers would show none at all"
    return RateNight(
        State.OK if detectable is not None else State.UNKNOWN,
        rate,
        None,
        None,
        None,
        float(found.evidence[0, -1]),
        detectable,
        reason,
    )


def _in_alarm(found: RateChanges, rate: Rate, *, failures: bool) -> RateNight:
    first, since = int(found.first[0]), int(found.since[0])
    before, after = float(found.before[0, first]), float(found.after[0, first])
    state = State.WORSE if failures and after > before else State.CHANGED
    return RateNight(
        state=state,
        rate=rate,
        before=before,
        after=after,
        since=since,
        e_value=float(found.evidence[0, first]),
        detectable=None,
        reason=f"the rate went from {before:.3g} to {after:.3g}",
    )


def _detectable(events: Values, trials: Values, threshold: float, baseline: int) -> float | None:
    """Assume the change one window or less ago, and the floor of the correlation within a night."""
    measured = np.flatnonzero(trials > 0)
    cut = max(baseline, measured.size - _WINDOW)
    old, new = measured[:cut], measured[cut:]
    size = float((trials[measured] ** 2).sum() / trials[measured].sum())
    effect = 1 + (size - 1) * CORRELATION_FLOOR
    rate = float(events[old].sum() / trials[old].sum())
    frequent = rate > 0.5  # the change that has room is then a fall
    found = detectable_rate(
        1 - rate if frequent else rate,
        float(trials[old].sum()),
        float(trials[new].sum()),
        threshold,
        design_effect=effect,
    )
    return None if found is None else 1 - found if frequent else found
