"""The series of nights of one endpoint: read from the store, judged, and stated as findings.

The rule of one night asks whether an endpoint serves the model; a series asks
whether it still serves what it served before (docs/methods.md, "Alarms").
Which numbers are watched is said in `collector.streams.watched`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from collector.prompt_states import judge_prompt_states
from collector.streams.blame import Tonight, tonight_of
from collector.streams.detectors import raised, taken_back, tell_all
from collector.streams.statement import by_its_past, standing, with_its_past
from collector.streams.stream import Stream, streams_of
from collector.streams.told import Told
from collector.streams.watched import OF_THE_CURVE, OF_THE_PARTS, WATCHED, streams_each, watched_of
from logprob_drift.alarms.night_detector import Rule
from ringtrue.alarm import Alarm
from ringtrue.config import Settings
from ringtrue.e_values import alarm_threshold
from ringtrue.nightly_numbers import Reading
from ringtrue.records import DRIFT, Check, Finding
from ringtrue.store import Store
from ringtrue.verdict import state_of

BASELINE_KEPT = 60  # nights, before those in which a change is looked for
CHECKS = tuple(dict.fromkeys(row.check for row in WATCHED))


@dataclass(frozen=True, slots=True)
class Watch:
    """How series are watched: nights of one ``basis`` only, by ``rule``."""

    basis: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class Judged:
    """The findings with what the series add, and the alarms that were raised or went away tonight."""

    findings: tuple[Finding, ...]
    alarms: tuple[Alarm, ...] = ()


def watch_for(settings: Settings, *, endpoints: int, basis: str) -> Watch:
    """Return the watch whose alarms keep the budget over all streams of all endpoints together."""
    streams = endpoints * streams_each(metrics_asked(settings), len(settings.probe.buckets))
    return Watch(basis, Rule(alarm_threshold(streams, per_year=settings.alarms.false_alarms_per_year)))


def metrics_asked(settings: Settings) -> frozenset[str]:
    """Return the metrics that a cycle may emit: every stream of them has its share of the budget."""
    asked = settings.parts.model_dump()
    return frozenset(row.name for row in WATCHED if row.part is None or asked[row.part])


def judge_series(
    store: Store, endpoint: str, findings: Sequence[Finding], watch: Watch, *, run: str, at: datetime
) -> Judged:
    """Return the findings of ``run`` with what the endpoint's series of nights say, tonight included.

    The first finding of each check gets the state of its streams as evidence.
    While an alarm stands, a finding of its own says so and asks for CHANGED
    (WORSE where a share changed in the direction that does harm), except on a night on
    which nothing of the check was measured: that one stays UNKNOWN, and its
    evidence names the alarm. Nothing is written.

    Raises:
        StoreError: The store refused.
    """
    tonight = tonight_of(findings)
    alarms = store.alarms(endpoint)
    streams = [
        stream
        for reading, counts in ((OF_THE_CURVE, tonight.believed), (OF_THE_PARTS, tonight.own_ids))
        for stream in _streams(store, endpoint, watch, reading, alarms, run=run, counts=counts)
    ]
    told = tell_all(streams, watch.rule)
    checks = [
        _OfCheck(
            check,
            [finding for finding in findings if finding.check is check],
            [alarm for alarm in alarms if alarm.check is check and watched_of(alarm.stream) is not None],
            [stream for stream in streams if stream.watched.check is check],
            [one for one in told if one.stream.watched.check is check],
        )
        for check in CHECKS
    ]
    stated = list(findings)
    alarmed = [(of_check, *of_check.alarms_tonight(run, endpoint, at)) for of_check in checks]
    mixed = any(of_check.check is Check.SESSIONS and open_alarms for of_check, open_alarms, _ in alarmed)
    tonight = replace(tonight, some_sessions=tonight.some_sessions or mixed)
    for of_check, open_alarms, _ in alarmed:
        of_check.state(stated, endpoint, open_alarms, tonight)
    of_prompts, changed = judge_prompt_states(store, endpoint, findings, run=run, at=at)
    new = [alarm for *_, of_check in alarmed for alarm in of_check]
    return Judged((*stated, *of_prompts), (*new, *changed))


def _streams(
    store: Store,
    endpoint: str,
    watch: Watch,
    reading: Reading,
    alarms: Sequence[Alarm],
    *,
    run: str,
    counts: bool,
) -> list[Stream]:
    if not counts:
        return []
    limit = BASELINE_KEPT + watch.rule.window
    nights = store.nights(endpoint, watch.basis, reading, run=run, counts=True, limit=limit)
    if not nights or nights[-1].run != run:
        return []
    return streams_of(nights, [row for row in WATCHED if row.name in reading.metrics], alarms)


@dataclass(frozen=True, slots=True)
class _OfCheck:
    """One check tonight: its own findings, all its alarms, its streams, and what those that count say."""

    check: Check
    own: Sequence[Finding]
    alarms: Sequence[Alarm]
    streams: Sequence[Stream]
    told: Sequence[Told]

    def alarms_tonight(self, run: str, endpoint: str, at: datetime) -> tuple[list[Alarm], list[Alarm]]:
        """Return the alarms that stand after tonight, and those that tonight raised or took back."""
        open_now = {alarm.stream: alarm for alarm in self.alarms if alarm.closed is None}
        drifts = any(state_of(finding) in DRIFT for finding in self.own)
        new = []
        for one in self.told:
            name = one.stream.name
            if name in open_now:
                alarm = None if drifts else taken_back(open_now[name], one.stream, at)
            else:
                alarm = raised(one, run, endpoint, at)
            if alarm is not None:
                new.append(alarm)
                open_now[name] = alarm
        return [alarm for alarm in open_now.values() if alarm.closed is None], new

    def state(
        self, findings: list[Finding], endpoint: str, open_alarms: Sequence[Alarm], tonight: Tonight
    ) -> None:
        """Put what the series say into ``findings``."""
        own = self.own[0] if self.own else None
        quiet = [one for one in self.told if one.stream.name not in {a.stream for a in open_alarms}]
        stated = own if own is None else with_its_past(own, quiet)
        if own is None and quiet:
            stated = by_its_past(endpoint, self.check, quiet)
        if stated is not None and (self.told or self.streams or open_alarms or own is None):
            stated = replace(stated, evidence={**stated.evidence, **self._evidence(open_alarms)})
        if stated is not None and own is None:
            findings.append(stated)
        elif stated is not None:
            findings[findings.index(self.own[0])] = stated
        if open_alarms and (self.told or any(finding.measured for finding in self.own)):
            accepted = frozenset(alarm.stream for alarm in self.alarms if alarm.by is not None)
            measured = [one.stream for one in self.told]
            findings.append(standing(endpoint, self.check, open_alarms, accepted, measured, tonight))

    def _evidence(self, open_alarms: Sequence[Alarm]) -> Mapping[str, Any]:
        said = {one.stream.name: one.state for one in self.told}
        silent = {s.name: {"tonight": s.tonight} for s in self.streams if s.tonight is not None}
        since = {alarm.stream: alarm.since.isoformat() for alarm in open_alarms}
        return {"series": {**said, **silent}, "standing_since": since}
