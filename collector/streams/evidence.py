"""Streams of nights that are evidence by themselves: e-values against a stated null, summed over starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from collector.streams.stream import Indices, Stream, Values
from collector.streams.told import Change, Told, missing_nights
from collector.streams.watched import Kind
from logprob_drift.alarms.mixture import FALSE_POSITIVE, session_e_values
from logprob_drift.alarms.night_detector import Rule
from logprob_drift.alarms.restarts import sum_over_starts
from logprob_drift.alarms.standing import nights_of_the_null
from logprob_drift.token_only.border_inputs import (
    intra_batch_correlation,
    violation_e_values,
    violation_rate,
)
from ringtrue.alarm import Alarm

# Honest prompts violate too rarely to show how much those of a night resemble each other,
# and a correlation taken too low costs false alarms.
LEAST_CORRELATION = 0.1
_LARGEST = 600.0  # log e-value; more would overflow and say no more

EValues = Callable[[Values, Values], Values]
"""Returns e-values [alternatives, nights] of values and sample sizes [nights]."""


def tell_evidence(streams: Sequence[Stream], rule: Rule) -> list[Told]:
    """Return what each stream says; the null of border violations comes from its own earlier nights."""
    return [_told(stream, rule) for stream in streams]


def _told(stream: Stream, rule: Rule) -> Told:
    measured = stream.measured
    judged, level, spread = measured, 0.0, 0.0  # an e-value of 1, as honest nights have at most
    if stream.kind is Kind.SESSIONS:
        level = FALSE_POSITIVE
    if stream.kind is Kind.VIOLATIONS:
        missing = missing_nights(measured.size, rule.baseline)
        if missing:
            return Told(stream, int(measured.size), missing, rule.threshold)
        cut = max(rule.baseline, measured.size - rule.window)
        judged = measured[cut:]
        level, spread = _null(stream, measured[:cut])
    e_values = _e_values(stream.kind, level, spread)(stream.values[judged], stream.n[judged])
    summed = sum_over_starts(e_values, rule.window)
    evidence = float(summed.m[:, -1].mean())
    start = int(judged[summed.since[summed.m[:, -1].argmax(), -1]])
    return Told(
        stream=stream,
        nights=int(measured.size),
        missing=0,
        threshold=rule.threshold,
        evidence=evidence,
        change=Change(start, level, spread) if evidence >= rule.threshold else None,
    )


def _null(stream: Stream, nights: Indices) -> tuple[float, float]:
    """Return the rate that honest border prompts stay below, and their correlation within a night."""
    events = stream.events(stream.values)[nights].astype(np.int64)
    asked = stream.n[nights].astype(np.int64)
    rate = violation_rate(int(events.sum()), int(asked.sum()))
    correlation = max(intra_batch_correlation(events[:, None], asked[:, None]), LEAST_CORRELATION)
    return min(rate, 0.999), correlation


def _e_values(kind: Kind, level: float, spread: float) -> EValues:
    """Return how a kind's nights become e-values against the null of ``level`` and ``spread``."""

    def of_logs(values: Values, _: Values) -> Values:
        return np.exp(np.minimum(values, _LARGEST))[None]

    def of_sessions(values: Values, n: Values) -> Values:
        bad = np.round(values * n).astype(np.int64)
        return session_e_values(bad, n.astype(np.int64))

    def of_violations(values: Values, n: Values) -> Values:
        violating = np.round(values * n).astype(np.int64)
        return violation_e_values(violating, n.astype(np.int64), level, spread)[None]

    return {Kind.LOG_E: of_logs, Kind.SESSIONS: of_sessions, Kind.VIOLATIONS: of_violations}[kind]


def null_is_back(stream: Stream, alarm: Alarm) -> int | None:
    """Return how many last nights' log e-values say that the null holds again, ``None`` where they don't."""
    return nights_of_the_null(stream.raw[stream.since(alarm.since)])
