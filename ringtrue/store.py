"""The system of record: runs, what they measured, and what was concluded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Table, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ringtrue.alarm import Alarm
from ringtrue.database import Database, open_database
from ringtrue.errors import LeaseHeldError
from ringtrue.labelled_numbers import LabelledNumbers, read_labelled
from ringtrue.nightly_numbers import NightNumbers, Reading, read_nights
from ringtrue.records import Check, Finding, Observation, Verdict
from ringtrue.rows import from_row, to_row
from ringtrue.tables import ALARM, FINDING, FLOOR, LEASE, OBSERVATION, RUN, VERDICT

Clock = Callable[[], datetime]
"""Returns the time of day in UTC, aware."""

FloorTable = Mapping[str, Sequence[Sequence[float]]]
"""Honest top-k lists by prompt: ``[[token id, logprob in nats], ...]``."""


class RunStatus(StrEnum):
    """How far a run came."""

    RUNNING = "running"
    OK = "ok"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Run:
    """One cycle of measuring; ``reason`` says why it did not end well.

    Numbers of runs with the same ``basis`` come from the same prompts, reference and k.
    """

    id: str
    started: datetime
    ended: datetime | None
    status: RunStatus
    reason: str | None
    basis: str | None = None


class Store:
    """Keeps and returns records. Safe to call from several threads.

    A write that returned is durable, and a write that raised left nothing
    behind. Every method may raise `StoreError`.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @property
    def where(self) -> str:
        """The file or server, fit to be shown."""
        return self._database.where

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    # Runs

    def start_run(self, run: str, basis: str | None = None) -> None:
        """Open a run. One that a crash left open is marked as failed: the lease lets only one be open."""
        now = self._clock()
        abandoned = {"status": RunStatus.FAILED.value, "ended": now, "reason": "ended without a word"}
        with self._database.write() as connection:
            connection.execute(update(RUN).where(RUN.c.status == RunStatus.RUNNING.value).values(abandoned))
            row = {"id": run, "started": now, "status": RunStatus.RUNNING.value, "basis": basis}
            connection.execute(RUN.insert(), row)

    def finish_run(self, run: str, status: RunStatus, reason: str | None = None) -> None:
        """Close a run."""
        with self._database.write() as connection:
            ended = {"status": status.value, "ended": self._clock(), "reason": reason}
            connection.execute(update(RUN).where(RUN.c.id == run).values(ended))

    def runs(self) -> tuple[Run, ...]:
        """Return all runs, the newest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(RUN).order_by(RUN.c.started.desc(), RUN.c.id.desc())).mappings()
            return tuple(Run(**{**row, "status": RunStatus(row["status"])}) for row in rows)

    # What a run measured and concluded

    def add_observations(self, observations: Sequence[Observation]) -> None:
        """Keep observations, all or none."""
        with self._database.write() as connection:
            _insert(connection, OBSERVATION, [to_row(observation) for observation in observations])

    def conclude(
        self,
        run: str,
        findings: Sequence[Finding],
        verdicts: Sequence[Verdict],
        alarms: Sequence[Alarm] = (),
    ) -> None:
        """Keep what was found about an endpoint and what follows from it, all or none.

        An alarm that is there already is replaced: it was closed.
        """
        with self._database.write() as connection:
            _insert(connection, FINDING, [{**to_row(finding), "run": run} for finding in findings])
            _insert(connection, VERDICT, [to_row(verdict) for verdict in verdicts])
            for alarm in alarms:
                _upsert(connection, ALARM, to_row(alarm))

    def observations(self, run: str) -> tuple[Observation, ...]:
        """Return the observations of a run, in the order they were stored."""
        query = select(OBSERVATION).where(OBSERVATION.c.run == run).order_by(OBSERVATION.c.id)
        with self._database.read() as connection:
            return tuple(from_row(Observation, row) for row in connection.execute(query).mappings())

    def count_observations(self, run: str) -> int:
        """Return how many observations a run has."""
        query = select(func.count()).select_from(OBSERVATION).where(OBSERVATION.c.run == run)
        with self._database.read() as connection:
            return connection.execute(query).scalar_one()

    def findings(self, run: str) -> tuple[Finding, ...]:
        """Return the findings of a run, in the order they were stored."""
        query = select(FINDING).where(FINDING.c.run == run).order_by(FINDING.c.id)
        with self._database.read() as connection:
            return tuple(from_row(Finding, row) for row in connection.execute(query).mappings())

    def current_verdicts(self, endpoint: str | None = None) -> tuple[Verdict, ...]:
        """Return the newest verdict of each endpoint and check, by endpoint, in the order of `Check`."""
        newest = select(func.max(VERDICT.c.id)).group_by(VERDICT.c.endpoint, VERDICT.c.check)
        query = select(VERDICT).where(VERDICT.c.id.in_(newest))
        if endpoint is not None:
            query = query.where(VERDICT.c.endpoint == endpoint)
        with self._database.read() as connection:
            verdicts = [from_row(Verdict, row) for row in connection.execute(query).mappings()]
        order = list(Check)
        return tuple(sorted(verdicts, key=lambda verdict: (verdict.endpoint, order.index(verdict.check))))

    def previous_verdicts(self) -> dict[tuple[str, Check], Verdict]:
        """Return the current verdicts by endpoint and check, as ``ringtrue.verdict.conclude`` wants them."""
        return {(verdict.endpoint, verdict.check): verdict for verdict in self.current_verdicts()}

    # Series of nights

    def nights(
        self, endpoint: str, basis: str, reading: Reading, *, run: str, counts: bool, limit: int
    ) -> tuple[NightNumbers, ...]:
        """Return the last nights of an endpoint, as `ringtrue.nightly_numbers.read_nights`."""
        with self._database.read() as connection:
            return read_nights(connection, endpoint, basis, reading, run=run, counts=counts, nights=limit)

    def labelled(
        self, endpoint: str, metrics: Sequence[str], *, run: str, limit: int
    ) -> tuple[LabelledNumbers, ...]:
        """Return what the last runs kept of single questions, as `labelled_numbers.read_labelled`."""
        with self._database.read() as connection:
            return read_labelled(connection, endpoint, metrics, run=run, limit=limit)

    def alarms(self, endpoint: str, check: Check | None = None) -> tuple[Alarm, ...]:
        """Return all alarms of an endpoint (and check), those that were closed too, the oldest first."""
        mine = ALARM.c.endpoint == endpoint
        if check is not None:
            mine &= ALARM.c.check == check.value
        query = select(ALARM).where(mine).order_by(ALARM.c.raised, ALARM.c.run, ALARM.c.stream)
        with self._database.read() as connection:
            return tuple(from_row(Alarm, row) for row in connection.execute(query).mappings())

    # Noise floors

    def floor_get(self, key: str) -> FloorTable | None:
        """Return the noise floor kept under ``key``."""
        with self._database.read() as connection:
            table: FloorTable | None = connection.scalar(select(FLOOR.c.top_k).where(FLOOR.c.key == key))
        return table

    def floor_put(self, key: str, table: FloorTable) -> None:
        """Keep a noise floor; ``key`` names weights, dtype, prompt set and k."""
        with self._database.write() as connection:
            _upsert(connection, FLOOR, {"key": key, "top_k": table, "at": self._clock()})

    # Leases

    def acquire_lease(self, name: str, holder: str, ttl: timedelta) -> None:
        """Take a lease, or one that has run out.

        Raises:
            LeaseHeldError: Another holds it; says who, since and until when.
        """
        now = self._clock()
        row = {"name": name, "holder": holder, "acquired": now, "expires": now + ttl}
        free = (LEASE.c.expires <= now) | (LEASE.c.holder == holder)
        with self._database.write() as connection:
            if _upsert(connection, LEASE, row, where=free):
                return
            held = connection.execute(select(LEASE).where(LEASE.c.name == name)).mappings().one()
        raise LeaseHeldError(
            f"{held['holder']} runs a {name} here since {held['acquired']:%Y-%m-%d %H:%M:%S}Z",
            where=self.where,
            remedy=f"Wait for it (--wait); if it has died, its lease ends at {held['expires']:%H:%M:%S}Z",
        )

    def renew_lease(self, name: str, holder: str, ttl: timedelta) -> None:
        """Prolong a lease.

        Raises:
            LeaseHeldError: It had run out and is no longer ours.
        """
        mine = (LEASE.c.name == name) & (LEASE.c.holder == holder)
        with self._database.write() as connection:
            renewed = update(LEASE).where(mine).values(expires=self._clock() + ttl)
            if connection.execute(renewed).rowcount:
                return
        raise LeaseHeldError(
            f"the lease {name} ran out and was taken over",
            where=self.where,
            remedy="Is this machine stalling?",
        )

    def release_lease(self, name: str, holder: str) -> None:
        """Give a lease back; one that is no longer ours stays."""
        with self._database.write() as connection:
            connection.execute(LEASE.delete().where(LEASE.c.name == name, LEASE.c.holder == holder))


def open_store(url: str, *, clock: Clock, read_only: bool = False) -> Store:
    """Return the store at ``url``, created or upgraded where needed and allowed.

    Raises:
        NewerStoreError: A newer ringtrue wrote it; it is left untouched.
        StoreError: It cannot be used; says why and what to do.
    """
    return Store(open_database(url, read_only=read_only), clock)


def _insert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(table.insert(), list(rows))


def _upsert(connection: Connection, table: Table, row: dict[str, Any], where: Any = None) -> bool:
    """Insert, or replace the row of the same key if ``where`` allows; say whether it was done."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    key = list(table.primary_key)
    insert = dialect.insert(table).values(row)
    upsert = insert.on_conflict_do_update(index_elements=key, set_=row, where=where)
    # The row count of an insert is not told by every driver; the returned key is.
    return connection.execute(upsert.returning(*key)).first() is not None
