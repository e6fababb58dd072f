"""What a replay says of each series: an alarm, a notice, quiet, or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Alarm:
    """The first batch at which a detector would have alarmed.

    ``at`` is the time of that batch's last request (seconds since 1970).
    ``since`` is the batch in which the change is estimated to have begun, and
    ``requests`` counts the endpoint's requests that this series is made of,
    from the first of that batch to the last of ``batch``: what the detection took.
    ``e_value`` is the evidence at the alarm, ``evidence`` the numbers behind it.
    """

    endpoint: str
    detector: str
    at: float
    batch: str
    requests: int
    e_value: float
    since: str
    evidence: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Quiet:
    """A series that was judged and did not alarm.

    ``detectable`` is the smallest lasting shift, in ``unit``, that would be in
    alarm by the last batch; ``None`` where none would yet, or it is not known.
    """

    endpoint: str
    detector: str
    series: str
    batches: int
    e_value: float
    detectable: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A series that could not be judged, and why."""

    endpoint: str
    detector: str
    series: str
    reason: str


Outcome = Alarm | Quiet | Unknown


@dataclass(frozen=True, slots=True)
class Replay:
    """Everything that a replay found.

    ``notices`` have the shape of alarms but no place in the budget of false
    alarms. ``threshold`` is the evidence at which a series alarms, from
    ``streams`` that share ``per_year`` false alarms a year of
    ``batches_a_year``.
    """

    alarms: tuple[Alarm, ...]
    notices: tuple[Alarm, ...]
    quiet: tuple[Quiet, ...]
    unknown: tuple[Unknown, ...]
    notes: tuple[str, ...]
    detectors: tuple[str, ...]
    threshold: float
    streams: int
    per_year: float
    batches_a_year: float
    lines: Mapping[str, int] = field(default_factory=dict)
