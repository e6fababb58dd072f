"""Which judge a stream goes to, and which rule says that it is back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from collector.streams.evidence import null_is_back, tell_evidence
from collector.streams.numbers import number_is_back, tell_numbers
from collector.streams.rates import rate_is_as_before, tell_rates
from collector.streams.stream import Stream
from collector.streams.told import Told
from collector.streams.watched import Kind
from logprob_drift.alarms.night_detector import Rule
from ringtrue.alarm import Alarm


@dataclass(frozen=True, slots=True)
class Detector:
    """``tell`` judges streams over the same nights; ``is_back`` counts the nights that end an alarm."""

    tell: Callable[[Sequence[Stream], Rule], list[Told]]
    is_back: Callable[[Stream, Alarm], int | None]


DETECTORS: Mapping[Kind, Detector] = {
    Kind.NUMBER: Detector(tell_numbers, number_is_back),
    Kind.RATE: Detector(tell_rates, rate_is_as_before),
    Kind.LOG_E: Detector(tell_evidence, null_is_back),
    Kind.VIOLATIONS: Detector(tell_evidence, rate_is_as_before),
    Kind.SESSIONS: Detector(tell_evidence, rate_is_as_before),
}


def tell_all(streams: Iterable[Stream], rule: Rule) -> list[Told]:
    """Return what the streams that have a number tonight say, in their order."""
    grouped: defaultdict[tuple[object, ...], list[Stream]] = defaultdict(list)
    mine = [stream for stream in streams if stream.tonight is None]
    for stream in mine:
        metric = stream.watched.metric if stream.kind is Kind.NUMBER else None
        grouped[stream.kind, metric, len(stream.starts)].append(stream)
    told = {
        one.stream.name: one
        for group in grouped.values()
        for one in DETECTORS[group[0].kind].tell(group, rule)
    }
    return [told[stream.name] for stream in mine]


def taken_back(alarm: Alarm, stream: Stream, at: datetime) -> Alarm | None:
    """Return the alarm closed, where its stream is back at what it was before."""
    nights = DETECTORS[stream.kind].is_back(stream, alarm)
    if nights is None:
        return None
    since = stream.since(alarm.since)
    return replace(alarm, closed=at, until=stream.starts[since[-nights]])


def raised(told: Told, run: str, endpoint: str, at: datetime) -> Alarm | None:
    """Return tonight's alarm. Tonight alone decides: an alarm of before is in the store."""
    change, stream = told.change, told.stream
    if change is None or told.evidence is None:
        return None
    return Alarm(
        run=run,
        endpoint=endpoint,
        check=stream.watched.check,
        stream=stream.name,
        since=stream.starts[change.start],
        raised=at,
        evidence=told.evidence,
        threshold=told.threshold,
        level=change.level,
        spread=change.spread,
    )
