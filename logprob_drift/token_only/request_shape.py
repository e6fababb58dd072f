"""What the callers ask: a change here is theirs, and is told so that nobody blames the endpoint for it.

(docs/methods.md, "Request shape".) Numbers of one night for the night
detector; nothing of a request but counts and its route is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from logprob_drift.alarms.metric import Metric
from ringtrue.records import Cause, Check, Finding, Interval, Party, Severity

LOG_INPUT = Metric(resolution=0.01, unit="log tokens")
TOOLS = Metric(resolution=0.01, unit="tools a request")
TURNS = Metric(resolution=0.01, unit="turns a request")
ROUTE_SHARE = Metric(resolution=0.005, unit="share of requests")


@dataclass(frozen=True, slots=True)
class RequestShape:
    """One request: input tokens (``None``: not counted), tools offered, turns, and the route it came by."""

    input_tokens: int | None
    tools: int
    turns: int
    route: str


@dataclass(frozen=True, slots=True)
class ShapeNumber:
    """One night's number of one stream, from ``n`` requests; ``value`` is ``None`` for none."""

    value: float | None
    n: int
    metric: Metric


def shape_numbers(requests: Sequence[RequestShape], routes: Sequence[str]) -> Mapping[str, ShapeNumber]:
    """Return the night's numbers by stream: ``input_length``, ``tools``, ``turns``, ``route:NAME``.

    ``routes`` are the streams to report, the same every night, fixed when the
    baseline ends: a route that nobody took has a share of 0, and on a night
    without requests none. Requests by other routes make up ``route:other``.
    """
    count = len(requests)
    lengths = [r.input_tokens for r in requests if r.input_tokens is not None and r.input_tokens > 0]
    numbers = {
        "input_length": ShapeNumber(
            float(np.log(lengths).mean()) if lengths else None, len(lengths), LOG_INPUT
        ),
        "tools": ShapeNumber(_mean([r.tools for r in requests]), count, TOOLS),
        "turns": ShapeNumber(_mean([r.turns for r in requests]), count, TURNS),
    }
    known = set(routes)
    for name in (*routes, "other"):
        taken = [(r.route not in known) if name == "other" else (r.route == name) for r in requests]
        numbers[f"route:{name}"] = ShapeNumber(_mean(taken), count, ROUTE_SHARE)
    return numbers


def _mean(values: Sequence[int | bool]) -> float | None:
    return float(np.mean(values)) if values else None


def shape_finding(
    endpoint: str, stream: str, *, before: float, after: ShapeNumber, interval: Interval | None, nights: int
) -> Finding:
    """Return the finding that a stream of requests changed ``nights`` nights ago: ``info``, cause ``caller``.

    ``before`` is the mean of the nights before the change, ``after`` tonight's number.

    Raises:
        ValueError: tonight was not measured.
    """
    if after.value is None:
        raise ValueError(f"{stream} was not measured tonight")
    unit = after.metric.unit
    return Finding(
        endpoint=endpoint,
        check=Check.OUTPUT,
        code="request_shape_changed",
        severity=Severity.INFO,
        party=Party.CALLER,
        cause=Cause.CALLER,
        message=(
            f"callers ask otherwise since {nights} nights: {stream} went from {before:.3g} "
            f"to {after.value:.3g} {unit}, so changes of the answers may be theirs"
        ),
        effect=after.value - before,
        unit=unit,
        interval=interval,
        n=after.n,
        metric=stream,
        value=after.value,
    )
