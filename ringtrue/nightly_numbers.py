"""The numbers of past nights: one run a night, of runs that can be compared with one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import ColumnElement, Connection, Select, select

from ringtrue.records import Check, Severity, Stratum
from ringtrue.tables import FINDING, OBSERVATION, RUN

OF_CHATS = "prompts."
"""What the codes of findings of `tokens` begin with that are not about the prompts numbers come from."""

Numbers = Mapping[tuple[str, int | None], tuple[float, int]]
"""Value and sample size by metric and prompt length in tokens (``None``: of no length)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read: numbers of these ``metrics``, of nights whose token IDs did not differ.

    With ``believed`` the IDs must have been seen to be the model's own, and
    the endpoint's logprobs must have been believed.
    """

    metrics: tuple[str, ...]
    believed: bool


@dataclass(frozen=True, slots=True)
class NightNumbers:
    """What the newest comparable run of a night, a UTC day, measured."""

    run: str
    started: datetime
    numbers: Numbers


def read_nights(
    connection: Connection,
    endpoint: str,
    basis: str,
    reading: Reading,
    *,
    run: str,
    counts: bool,
    nights: int,
) -> tuple[NightNumbers, ...]:
    """Return the last ``nights`` nights that can be compared, in order of time, that of ``run`` included.

    A run counts when it asked the same (``basis``), when its findings satisfy
    the reading, and when it has a number of it. ``run`` itself has no findings
    yet and counts as ``counts`` says; it is then the newest of its night.
    What started after it, by a clock that was set back since, is left out.
    """
    tonight = RUN.c.id == run
    sound = _found(endpoint, _own_ids(reading)) & (~tonight)
    if reading.believed:
        believed = (FINDING.c.check == Check.LOGPROBS.value) & FINDING.c.value.is_not(None)
        sound &= _found(endpoint, believed)
    if counts:
        sound |= tonight
    started = select(RUN.c.started).where(tonight).scalar_subquery()
    query = (
        select(RUN.c.id, RUN.c.started)
        .where(
            RUN.c.basis == basis, RUN.c.started <= started, sound, RUN.c.id.in_(_measured(endpoint, reading))
        )
        .order_by(tonight.desc(), RUN.c.started.desc(), RUN.c.id.desc())
    )
    newest: dict[date, tuple[str, datetime]] = {}
    with connection.execute(query, execution_options={"yield_per": 100}) as rows:
        for row_run, row_started in rows:
            if len(newest) == nights and row_started.date() not in newest:
                break
            newest.setdefault(row_started.date(), (row_run, row_started))
    numbers = _numbers(connection, endpoint, [chosen for chosen, _ in newest.values()], reading)
    return tuple(NightNumbers(chosen, at, numbers[chosen]) for chosen, at in reversed(newest.values()))


def _own_ids(reading: Reading) -> ColumnElement[bool]:
    alike = (FINDING.c.check == Check.TOKENS.value) & (FINDING.c.severity == Severity.INFO.value)
    alike &= ~FINDING.c.code.startswith(OF_CHATS)
    return alike & FINDING.c.measured if reading.believed else alike


def _found(endpoint: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    # A list that is made once; asked for each run anew, it would be searched as often.
    return RUN.c.id.in_(select(FINDING.c.run).where(FINDING.c.endpoint == endpoint, condition))


def _measured(endpoint: str, reading: Reading) -> Select[tuple[str]]:
    return select(OBSERVATION.c.run).where(_mine(endpoint, reading))


def _mine(endpoint: str, reading: Reading) -> ColumnElement[bool]:
    return (
        (OBSERVATION.c.endpoint == endpoint)
        & OBSERVATION.c.metric.in_(reading.metrics)
        & (OBSERVATION.c.stratum == Stratum.PROBE.value)
    )


def _numbers(
    connection: Connection, endpoint: str, runs: list[str], reading: Reading
) -> dict[str, dict[tuple[str, int | None], tuple[float, int]]]:
    query = (
        select(OBSERVATION)
        .where(OBSERVATION.c.run.in_(runs), _mine(endpoint, reading))
        .order_by(OBSERVATION.c.id)
    )
    found: dict[str, dict[tuple[str, int | None], tuple[float, int]]] = {run: {} for run in runs}
    for row in connection.execute(query).mappings():
        found[row["run"]][row["metric"], row["context_length"]] = (row["value"], row["n"])
    return found
