"""The record of an alarm: what the store keeps of a change from its night until it ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ringtrue.records import Check


@dataclass(frozen=True, slots=True)
class Alarm:
    """A change that a series of nights showed in one stream of an endpoint's numbers.

    ``run`` raised it at ``raised``; ``since`` is the start of the first run of
    the estimated change. ``evidence`` is what the night of the alarm said,
    ``threshold`` what it had to reach. ``level`` and ``spread`` are mean and SD
    of the nights before the change, on the metric's own scale; where nights are
    evidence against a stated null, what that null says of them: for border
    violations rate and correlation, for bad sessions the rate and 0, for a log
    e-value 0 and 0. States of prompts have no spread: their evidence is how
    many changed, and one is enough.

    It stands while ``closed`` is ``None``. An accepted one names who (``by``)
    and ``why``, and the nights from ``since`` on are the new baseline. One that
    went away by itself has no ``by``; its nights, from ``since`` to before
    ``until``, are left out of the series.
    """

    run: str
    endpoint: str
    check: Check
    stream: str
    since: datetime
    raised: datetime
    evidence: float
    threshold: float
    level: float
    spread: float
    closed: datetime | None = None
    until: datetime | None = None
    by: str | None = None
    why: str | None = None
