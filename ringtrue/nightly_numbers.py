"""The numbers of past nights: one run a night, of runs that can be compared with one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import ColumnElement, Connection, exists, select

from ringtrue.records import Check, Severity
from ringtrue.tables import FINDING, OBSERVATION, RUN

Metrics = Mapping[str, tuple[float, int]]
"""Value and sample size by the metric's name."""


@dataclass(frozen=True, slots=True)
class NightNumbers:
    """What the newest comparable run of a night, a UTC day, measured: metrics by bucket length in tokens."""

    run: str
    started: datetime
    buckets: Mapping[int, Metrics]


def read_nights(
    connection: Connection, endpoint: str, basis: str, *, tonight: str | None, nights: int
) -> tuple[NightNumbers, ...]:
    """Return the last ``nights`` nights that can be compared, in order of time.

    A run counts when it asked the same (``basis``), its logprobs were compared
    on the model's own token IDs, and its logprobs were believed. The run
    ``tonight`` has no findings yet and counts because it is named.
    """
    believed = (FINDING.c.check == Check.LOGPROBS.value) & FINDING.c.value.is_not(None)
    own_ids = (FINDING.c.check == Check.TOKENS.value) & (FINDING.c.severity == Severity.INFO.value)
    sound = _found(endpoint, believed) & _found(endpoint, own_ids & FINDING.c.measured)
    query = (
        select(RUN.c.id, RUN.c.started)
        .where(RUN.c.basis == basis, sound | (RUN.c.id == tonight))
        .order_by(RUN.c.started.desc(), RUN.c.id.desc())
    )
    newest: dict[date, tuple[str, datetime]] = {}
    with connection.execute(query, execution_options={"yield_per": 100}) as rows:
        for run, started in rows:
            if len(newest) == nights and started.date() not in newest:
                break
            newest.setdefault(started.date(), (run, started))
    numbers = _numbers(connection, endpoint, [run for run, _ in newest.values()])
    return tuple(NightNumbers(run, at, numbers.get(run, {})) for run, at in reversed(newest.values()))


def _found(endpoint: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return exists().where(FINDING.c.run == RUN.c.id, FINDING.c.endpoint == endpoint, condition)


def _numbers(connection: Connection, endpoint: str, runs: list[str]) -> dict[str, dict[int, Metrics]]:
    query = select(OBSERVATION).where(
        OBSERVATION.c.run.in_(runs),
        OBSERVATION.c.endpoint == endpoint,
        OBSERVATION.c.metric.in_(["kl_mean", "k_min"]),
        OBSERVATION.c.context_length.is_not(None),
    )
    found: dict[str, dict[int, dict[str, tuple[float, int]]]] = {}
    for row in connection.execute(query).mappings():
        bucket = found.setdefault(row["run"], {}).setdefault(row["context_length"], {})
        bucket[row["metric"]] = (row["value"], row["n"])
    return {run: dict(buckets) for run, buckets in found.items()}
