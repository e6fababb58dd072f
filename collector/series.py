"""The series of nights of one endpoint: read from the store, judged, and stated as a finding.

One stream a bucket of prompt lengths: the mean KL of a night. The rule of one
night asks whether an endpoint serves the model; a series asks whether it still
serves what it served before (docs/methods.md, "Alarms").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alarms.metric import Metric, Scale
from logprob_drift.alarms.night_detector import Alarms, Rule, detect
from logprob_drift.alarms.standing import BACK_NIGHTS, Baseline, baseline_of, is_back
from ringtrue.alarm import Alarm
from ringtrue.causes import Divergence, Ids, Symptoms, decide
from ringtrue.config import Settings
from ringtrue.e_values import alarm_threshold
from ringtrue.nightly_numbers import NightNumbers
from ringtrue.records import Cause, Check, Finding, Party, Severity, State
from ringtrue.store import Store
from ringtrue.verdict import state_of

Values = NDArray[np.float64]

CODE = "logprobs.series"
BASELINE_KEPT = 60  # nights, before those in which a change is looked for
LEAST_SHARE = 0.9  # of a bucket's prompts; a night with fewer is not measured

# The reference agrees with itself to 2e-4 nats in a logprob, and a night's mean to half of that.
KL = Metric(1e-4, Scale.LOG, "nats")


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


@dataclass(frozen=True, slots=True)
class Stream:
    """A bucket's nights, in order: ``values`` [nights] in nats, NaN where not measured.

    Nights of a returned alarm are left out, those before an accepted change
    lie before ``accepted``. ``raw`` holds them all.
    """

    name: str
    length: int
    starts: tuple[datetime, ...]
    raw: Values
    values: Values
    accepted: int
    prompts: int


def watch_for(settings: Settings, *, endpoints: int, basis: str) -> Watch:
    """Return the watch whose alarms keep the budget over all streams: a stream a bucket and endpoint."""
    streams = endpoints * len(settings.probe.buckets)
    return Watch(basis, Rule(alarm_threshold(streams, per_year=settings.alarms.false_alarms_per_year)))


def judge_series(
    store: Store, endpoint: str, findings: Sequence[Finding], watch: Watch, *, run: str, at: datetime
) -> Judged:
    """Return the findings of ``run`` with what the endpoint's series of nights say, tonight included.

    The finding of the check ``logprobs`` gets the state of each stream as
    evidence. While an alarm stands, a finding of its own says so and asks for
    CHANGED, except on a night that measured nothing: that one is UNKNOWN, and
    its evidence names the alarm. Nothing is written.

    Raises:
        StoreError: The store refused.
    """
    own = next((finding for finding in findings if finding.check is Check.LOGPROBS), None)
    if own is None:
        return Judged(tuple(findings))
    tonight = run if _comparable(findings) else None
    nights = store.nights(endpoint, watch.basis, tonight=tonight, limit=BASELINE_KEPT + watch.rule.window)
    alarms = store.alarms(endpoint, Check.LOGPROBS)
    streams = _streams(nights, alarms) if nights and nights[-1].run == run else []
    standing = {alarm.stream: alarm for alarm in alarms if alarm.closed is None}
    changed: list[Alarm] = []
    evidence: dict[str, Any] = {}
    for stream in streams:
        found = _detect(stream, watch.rule)
        evidence[stream.name] = _state(found)
        if stream.name in standing:
            alarm = _returned(standing[stream.name], stream, at) if state_of(own) is State.OK else None
        else:
            alarm = _raised(found, stream, run, endpoint, at)
        if alarm is not None:
            changed.append(alarm)
            standing[stream.name] = alarm
    open_alarms = [alarm for alarm in standing.values() if alarm.closed is None]
    series = {"series": evidence, "standing_since": {a.stream: a.since.isoformat() for a in open_alarms}}
    stated = tuple(
        replace(finding, evidence={**finding.evidence, **series}) if finding is own else finding
        for finding in findings
    )
    if open_alarms and (streams or own.measured):
        stated += (_finding(endpoint, open_alarms, streams, counted=_counted(findings)),)
    return Judged(stated, tuple(changed))


def _comparable(findings: Sequence[Finding]) -> bool:
    """Return whether tonight's logprobs were believed, and compared on the model's own token IDs."""
    tokens = [finding for finding in findings if finding.check is Check.TOKENS]
    believed = any(f.check is Check.LOGPROBS and f.value is not None for f in findings)
    return believed and any(f.measured and f.severity is Severity.INFO for f in tokens)


def _counted(findings: Sequence[Finding]) -> bool:
    return any(f.check is Check.TOKENS and f.evidence.get("counted") is True for f in findings)


def _streams(nights: Sequence[NightNumbers], alarms: Sequence[Alarm]) -> list[Stream]:
    """Return a stream for each bucket that was measured on the last night."""
    streams = []
    for length in sorted(nights[-1].buckets):
        raw, prompts = _values(nights, length)
        if np.isnan(raw[-1]):
            continue
        name = f"kl_mean@{length}"
        mine = [alarm for alarm in alarms if alarm.stream == name]
        starts = tuple(night.started for night in nights)
        accepted = max((_index(starts, a.since) for a in mine if a.by is not None), default=0)
        streams.append(Stream(name, length, starts, raw, _without(raw, starts, mine), accepted, prompts))
    return streams


def _values(nights: Sequence[NightNumbers], length: int) -> tuple[Values, int]:
    """Return the mean KL by night, NaN where it can't be compared with the last night's, and its prompts.

    Another k is another question, and a night that lost many prompts asked another set of them.
    """
    cells = [night.buckets.get(length, {}) for night in nights]
    k = cells[-1].get("k_min")
    most = max((cell["kl_mean"][1] for cell in cells if "kl_mean" in cell), default=0)
    values = np.full(len(cells), np.nan)
    for index, cell in enumerate(cells):
        value, n = cell.get("kl_mean", (np.nan, 0))
        alike = k is not None and "k_min" in cell and cell["k_min"][0] == k[0]
        if alike and n >= LEAST_SHARE * most and np.isfinite(value):
            values[index] = max(value, 0.0)  # a rounded sum may lie below 0
    return values, cells[-1].get("kl_mean", (np.nan, 0))[1]


def _without(raw: Values, starts: Sequence[datetime], alarms: Sequence[Alarm]) -> Values:
    values = raw.copy()
    for alarm in alarms:
        if alarm.until is not None:
            values[_index(starts, alarm.since) : _index(starts, alarm.until)] = np.nan
    return values


def _index(starts: Sequence[datetime], at: datetime) -> int:
    """Return how many nights started before ``at``."""
    return sum(start < at for start in starts)


def _detect(stream: Stream, rule: Rule) -> Alarms:
    return detect(stream.values[None, :], KL, rule, accepted=np.array([stream.accepted]))


def _state(found: Alarms) -> Mapping[str, Any]:
    """Return what a stream says tonight; ``missing_nights`` are those until it can be judged."""
    needed, observed = found.rule.baseline + 1, int(found.observed[0, -1])
    detectable = found.detectable[0, -1]
    judged = observed >= needed
    return {
        "nights": observed,
        "missing_nights": max(needed - observed, 0),
        "evidence": float(found.evidence[0, -1]) if judged else None,
        "guarded": float(found.guarded[0, -1]) if judged else None,
        "threshold": found.rule.threshold,
        "detectable": float(detectable) if judged and np.isfinite(detectable) else None,
    }


def _raised(found: Alarms, stream: Stream, run: str, endpoint: str, at: datetime) -> Alarm | None:
    """Return tonight's alarm. Tonight alone decides: an alarm of before is in the store."""
    evidence, guarded = found.evidence[0, -1], found.guarded[0, -1]
    if not (evidence >= found.rule.threshold and guarded >= found.rule.threshold):
        return None
    first = int(found.start[0, -1])
    before = stream.values[stream.accepted : first]
    baseline = baseline_of(before[~np.isnan(before)], KL)
    return Alarm(
        run=run,
        endpoint=endpoint,
        check=Check.LOGPROBS,
        stream=stream.name,
        since=stream.starts[first],
        raised=at,
        evidence=float(evidence),
        threshold=found.rule.threshold,
        level=baseline.level,
        spread=baseline.spread,
    )


def _returned(alarm: Alarm, stream: Stream, at: datetime) -> Alarm | None:
    """Return the alarm closed, where its stream is back at what it was."""
    measured = np.flatnonzero(~np.isnan(stream.raw))
    since = measured[measured >= _index(stream.starts, alarm.since)]
    if not is_back(stream.raw[since], Baseline(alarm.level, alarm.spread), KL):
        return None
    return replace(alarm, closed=at, until=stream.starts[since[-BACK_NIGHTS]])


def _finding(endpoint: str, alarms: Sequence[Alarm], streams: Sequence[Stream], *, counted: bool) -> Finding:
    """State the alarms that stand; the one that began first speaks for them."""
    speaker = min(alarms, key=lambda alarm: (alarm.since, -alarm.evidence))
    stream = next((stream for stream in streams if stream.name == speaker.stream), None)
    symptoms = Symptoms(ids=Ids.EQUAL, divergence=Divergence.EVERYWHERE)
    cause, alternatives = decide(symptoms)
    if counted:
        alternatives = (Cause.PROMPT, *alternatives)
    if len(alarms) < len(streams) or not streams:
        alternatives = (*alternatives, Cause.CONTEXT)
    return Finding(
        endpoint=endpoint,
        check=Check.LOGPROBS,
        code=CODE,
        severity=Severity.WARN,
        party=Party.PROVIDER,
        cause=cause,
        message=_words(speaker, alarms, stream),
        alternatives=alternatives,
        unit="nats",
        n=stream.prompts if stream is not None else 0,
        metric="kl",
        value=float(stream.raw[-1]) if stream is not None else None,
        effect=float(stream.raw[-1]) - KL.in_unit(speaker.level) if stream is not None else None,
        evidence={
            alarm.stream: {
                "since": alarm.since.isoformat(),
                "evidence": alarm.evidence,
                "threshold": alarm.threshold,
            }
            for alarm in alarms
        },
        since=speaker.since,
    )


def _words(speaker: Alarm, alarms: Sequence[Alarm], stream: Stream | None) -> str:
    length = int(speaker.stream.rpartition("@")[2])
    before = KL.in_unit(speaker.level)
    now = f"{stream.raw[-1]:.3g} tonight" if stream is not None else "not measured tonight"
    also = sorted(int(a.stream.rpartition("@")[2]) for a in alarms if a is not speaker)
    others = f", and at {', '.join(f'{other:,}' for other in also)} tokens" if also else ""
    return (
        f"no longer as it was before {speaker.since:%Y-%m-%d}: KL at {length:,} tokens {before:.3g} nats "
        f"then, {now} (e-value {speaker.evidence:.2g}, alarm at {speaker.threshold:,.0f}){others}. "
        f"Ask what was changed there; if it is wanted: ringtrue verdicts accept {speaker.endpoint!r} "
        "--by NAME --why TEXT"
    )
