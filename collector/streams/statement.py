"""What the series of nights add to an examination's findings: that a change stands, or that none is seen."""

from __future__ import annotations

from collections.abc import Sequence

from collector.streams.blame import Tonight, blame
from collector.streams.stream import Stream
from collector.streams.told import Told
from collector.streams.watched import OWN_PAST, Harm, Kind, Watched, watched_of
from evals.parts.answers.findings import with_baseline
from ringtrue.alarm import Alarm
from ringtrue.records import Cause, Check, Finding, Interval, Party, Severity
from ringtrue.stats import wilson

_COUNTS = frozenset({Kind.RATE, Kind.VIOLATIONS, Kind.SESSIONS})


def code_of(check: Check) -> str:
    """Return the code of the finding that says an alarm stands."""
    return f"{check}.series"


def standing(
    endpoint: str,
    check: Check,
    alarms: Sequence[Alarm],
    accepted: frozenset[str],
    streams: Sequence[Stream],
    tonight: Tonight,
) -> Finding:
    """State the alarms of a check that stand; the one that began first speaks for them.

    ``streams`` are those measured tonight, ``accepted`` names the streams that
    a change was accepted of.
    """
    rows = {alarm.stream: row for alarm in alarms if (row := watched_of(alarm.stream)) is not None}
    ordered = sorted(alarms, key=lambda alarm: (alarm.since, -alarm.evidence))
    speaker = ordered[0]
    row = rows[speaker.stream]
    held = {stream.name: stream for stream in streams}
    stream = held.get(speaker.stream)
    buckets = [name for name, one in held.items() if one.watched.bucketed]
    alarmed = [name for name, one in rows.items() if one.bucketed]
    cause, alternatives = blame(
        [rows[alarm.stream] for alarm in ordered],
        tonight,
        only_some_lengths=bool(alarmed) and (len(alarmed) < len(buckets) or not buckets),
    )
    worse = any(
        _harms(rows[alarm.stream], held[alarm.stream], alarm) for alarm in alarms if alarm.stream in held
    )
    kind = OWN_PAST.get(row.kind, row.kind) if speaker.stream in accepted else row.kind
    value = float(stream.raw[-1]) if stream is not None else None
    by_itself = kind is Kind.LOG_E
    before = None if by_itself else speaker.level if kind in _COUNTS else row.metric.in_unit(speaker.level)
    return Finding(
        endpoint=endpoint,
        check=check,
        code=code_of(check),
        severity=Severity.FAIL if worse else Severity.WARN,
        party=Party.PROVIDER,
        cause=cause,
        message=_words(speaker, ordered[1:], rows, value, before, kind),
        alternatives=alternatives,
        effect=None if value is None or before is None else value - before,
        unit=row.metric.unit,
        interval=_interval(stream),
        n=int(stream.n[-1]) if stream is not None else 0,
        metric="kl" if row.bucketed else row.name,
        value=value,
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


def _harms(row: Watched, stream: Stream, alarm: Alarm) -> bool:
    """Tell whether the share has moved in the direction that does harm since the alarm began."""
    since = stream.since(alarm.since)
    trials = stream.n[since].sum()
    if row.harmful is None or not trials:
        return False
    change = stream.events(stream.raw)[since].sum() / trials - alarm.level
    return bool(change > 0 if row.harmful is Harm.RISES else change < 0)


def _interval(stream: Stream | None) -> Interval | None:
    if stream is None or stream.watched.kind not in _COUNTS:
        return None
    return wilson(int(stream.events(stream.raw)[-1]), int(stream.n[-1]))


def _words(
    speaker: Alarm,
    others: Sequence[Alarm],
    rows: dict[str, Watched],
    value: float | None,
    before: float | None,
    kind: Kind,
) -> str:
    row = rows[speaker.stream]
    unit = "" if row.metric.unit.startswith("share") else f" {row.metric.unit}"
    now = "not measured tonight" if value is None else f"{value:.3g} tonight"
    length = speaker.stream.partition("@")[2]
    name = row.noun + (f" at {int(length):,} tokens" if length else "")
    if kind in (Kind.LOG_E, Kind.SESSIONS):
        said = f"not as the reference since {speaker.since:%Y-%m-%d}: {name} {now}"
    else:
        said = f"no longer as it was before {speaker.since:%Y-%m-%d}: {name} {before:.3g}{unit} then, {now}"
    return (
        f"{said} (e-value {speaker.evidence:.2g}, alarm at {speaker.threshold:,.0f})"
        f"{_also(speaker, others, rows)}. Ask what was changed there; if it is wanted: "
        f"{accept_command(speaker)}"
    )


def accept_command(alarm: Alarm) -> str:
    """Return the command by which a person accepts a change."""
    option = "" if alarm.check is Check.LOGPROBS else f" --check {alarm.check}"
    return f"ringtrue verdicts accept {alarm.endpoint!r}{option} --by NAME --why TEXT"


def _also(speaker: Alarm, others: Sequence[Alarm], rows: dict[str, Watched]) -> str:
    mine = speaker.stream.partition("@")[0]
    lengths = sorted(int(a.stream.partition("@")[2]) for a in others if a.stream.startswith(f"{mine}@"))
    also = f", and at {', '.join(f'{length:,}' for length in lengths)} tokens" if lengths else ""
    nouns = dict.fromkeys(rows[a.stream].noun for a in others if not a.stream.startswith(f"{mine}@"))
    return also + (f"; also {', '.join(nouns)}" if nouns else "")


def by_its_past(endpoint: str, check: Check, told: Sequence[Told]) -> Finding:
    """State what a check's nights say where the examination itself says nothing of it.

    UNKNOWN until all numbers that were measured tonight have their baseline.
    """
    missing = max(one.missing for one in told)
    numbers = ", ".join(f"{one.stream.watched.noun} {one.stream.raw[-1]:.3g}" for one in told)
    if missing:
        words = f"{numbers}; {missing} more nights are needed before a change can be seen"
    else:
        words = f"as in the nights before: {numbers} ({min(one.nights for one in told)} nights)"
    first = told[0]
    return Finding(
        endpoint=endpoint,
        check=check,
        code=f"{check}.nights",
        severity=Severity.INFO,
        party=Party.UNKNOWN,
        cause=Cause.UNKNOWN,
        message=words,
        unit=first.stream.watched.metric.unit,
        n=int(first.stream.n[-1]),
        detectable_effect=None if missing else first.detectable,
        metric=first.stream.watched.name,
        value=float(first.stream.raw[-1]),
        measured=not missing,
    )


def with_its_past(own: Finding, told: Sequence[Told]) -> Finding:
    """Return a finding of one night with what its number's nights add, where it waits for a baseline."""
    mine = next((one for one in told if one.stream.name == own.metric), None)
    return own if mine is None else with_baseline(own, mine.nights - 1, mine.detectable)
