"""Streams of numbers, held against their own past by the night detector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collector.streams.stream import Stream
from collector.streams.told import Change, Told, missing_nights
from logprob_drift.alarms.metric import Metric
from logprob_drift.alarms.night_detector import Alarms, Rule, detect
from logprob_drift.alarms.standing import BACK_NIGHTS, Baseline, baseline_of, is_back
from ringtrue.alarm import Alarm


def tell_numbers(streams: Sequence[Stream], rule: Rule) -> list[Told]:
    """Return what streams of one metric and the same nights say, judged at once."""
    metric = streams[0].watched.metric
    values = np.stack([stream.values for stream in streams])
    found = detect(values, metric, rule, accepted=np.array([stream.accepted for stream in streams]))
    return [_told(stream, at, found, metric) for at, stream in enumerate(streams)]


def _told(stream: Stream, at: int, found: Alarms, metric: Metric) -> Told:
    rule, nights = found.rule, int(found.observed[at, -1])
    missing = missing_nights(nights, rule.baseline)
    if missing:
        return Told(stream, nights, missing, rule.threshold)
    evidence, guarded = float(found.evidence[at, -1]), float(found.guarded[at, -1])
    detectable = float(found.detectable[at, -1])
    change = None
    if evidence >= rule.threshold and guarded >= rule.threshold:
        start = int(found.start[at, -1])
        before = stream.values[stream.accepted : start]
        baseline = baseline_of(before[~np.isnan(before)], metric)
        change = Change(start, baseline.level, baseline.spread)
    return Told(
        stream=stream,
        nights=nights,
        missing=0,
        threshold=rule.threshold,
        evidence=evidence,
        guarded=guarded,
        detectable=detectable if np.isfinite(detectable) else None,
        change=change,
    )


def number_is_back(stream: Stream, alarm: Alarm) -> int | None:
    """Return how many last nights are as before the change, ``None`` where they are not."""
    since = stream.raw[stream.since(alarm.since)]
    back = is_back(since, Baseline(alarm.level, alarm.spread), stream.watched.metric)
    return BACK_NIGHTS if back else None
