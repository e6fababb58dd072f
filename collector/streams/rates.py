"""Streams of shares, held against their own past as counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collector.streams.stream import Stream, Values
from collector.streams.told import Change, Told, missing_nights
from collector.streams.watched import Harm
from logprob_drift.alarms.night_detector import Rule
from logprob_drift.alarms.standing import BACK_NIGHTS, rate_is_back
from ringtrue.alarm import Alarm
from ringtrue.rate_change import CORRELATION_FLOOR, RateChanges, detectable_rate, rate_changes


def tell_rates(streams: Sequence[Stream], rule: Rule) -> list[Told]:
    """Return what streams over the same nights say, judged at once."""
    events = np.stack([stream.events(stream.values) for stream in streams])
    trials = np.stack([stream.trials(stream.values) for stream in streams])
    accepted = np.array([stream.accepted for stream in streams])
    found = rate_changes(
        events, trials, rule.threshold, baseline=rule.baseline, window=rule.window, accepted=accepted
    )
    return [_told(stream, at, found, rule) for at, stream in enumerate(streams)]


def _told(stream: Stream, at: int, found: RateChanges, rule: Rule) -> Told:
    nights = int(stream.measured.size)
    missing = missing_nights(nights, rule.baseline)
    if missing:
        return Told(stream, nights, missing, rule.threshold)
    evidence, guarded = float(found.evidence[at, -1]), float(found.guarded[at, -1])
    change = None
    if evidence >= rule.threshold and guarded >= rule.threshold:
        start = int(found.start[at, -1])
        before = stream.values[stream.accepted : start]
        spread = float(np.nanstd(before, ddof=1))
        change = Change(start, float(found.before[at, -1]), spread)
    return Told(
        stream=stream,
        nights=nights,
        missing=0,
        threshold=rule.threshold,
        evidence=evidence,
        guarded=guarded,
        detectable=_detectable(stream, rule),
        change=change,
    )


def _detectable(stream: Stream, rule: Rule) -> float | None:
    """Return the smallest change that the nights of the window would have shown, at the least correlation.

    It is a rise, and a fall of a share that does harm where it falls.
    """
    nights = stream.measured
    cut = max(rule.baseline, nights.size - rule.window)
    events, trials = stream.events(stream.values)[nights], stream.n[nights]
    if stream.watched.harmful is Harm.FALLS:
        events = trials - events
    rate = _share(events[:cut], trials[:cut])
    size = float((trials**2).sum() / trials.sum())
    effect = 1 + max(size - 1, 0) * CORRELATION_FLOOR
    before, after = float(trials[:cut].sum()), float(trials[cut:].sum())
    seen = detectable_rate(rate, before, after, rule.threshold, design_effect=effect)
    return None if seen is None else seen - rate


def _share(events: Values, trials: Values) -> float:
    return float(events.sum() / trials.sum())


def rate_is_as_before(stream: Stream, alarm: Alarm) -> int | None:
    """Return how many last nights have the old rate again, ``None`` where they have not.

    The changed rate is that of the nights up to the alarm; once these are read
    no longer, that of all nights but the last ones.
    """
    since, later = stream.since(alarm.since), stream.after(alarm.raised)
    until = since[~np.isin(since, later)]
    changed = until if until.size else later[:-BACK_NIGHTS]
    if not changed.size:
        return None
    events, trials = stream.events(stream.raw), stream.n
    rate = _share(events[changed], trials[changed])
    back = rate_is_back(events[later], trials[later], alarm.level, rate)
    return BACK_NIGHTS if back else None
