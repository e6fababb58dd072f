"""The numbers that past runs kept of single questions, by the label of the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from ringtrue.records import Stratum
from ringtrue.tables import OBSERVATION, RUN


@dataclass(frozen=True, slots=True)
class LabelledNumbers:
    """One run's values by metric and label (the ``session`` of its observations)."""

    run: str
    started: datetime
    values: Mapping[tuple[str, str], float]


def read_labelled(
    connection: Connection, endpoint: str, metrics: Sequence[str], *, run: str, limit: int
) -> tuple[LabelledNumbers, ...]:
    """Return the last ``limit`` runs with a number of these metrics, in order of time, ``run`` the last.

    Whatever they found, and whatever their reference was. What started after
    ``run``, by a clock that was set back since, is left out.
    """
    mine = (
        (OBSERVATION.c.endpoint == endpoint)
        & OBSERVATION.c.metric.in_(metrics)
        & (OBSERVATION.c.stratum == Stratum.PROBE.value)
    )
    started = select(RUN.c.started).where(RUN.c.id == run).scalar_subquery()
    chosen = (
        select(RUN.c.id, RUN.c.started)
        .where(RUN.c.started <= started, RUN.c.id.in_(select(OBSERVATION.c.run).where(mine)))
        .order_by((RUN.c.id == run).desc(), RUN.c.started.desc(), RUN.c.id.desc())
        .limit(limit)
    )
    starts = {row.id: row.started for row in connection.execute(chosen)}
    rows = select(OBSERVATION).where(mine, OBSERVATION.c.run.in_(starts)).order_by(OBSERVATION.c.id)
    values: dict[str, dict[tuple[str, str], float]] = {one: {} for one in starts}
    for row in connection.execute(rows).mappings():
        if row["session"] is not None:
            values[row["run"]][row["metric"], row["session"]] = row["value"]
    return tuple(LabelledNumbers(one, starts[one], values[one]) for one in reversed(starts))
