"""The store on a PostgreSQL server that the test starts for itself, reachable by a socket file only."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from ringtrue.alarm import Alarm
from ringtrue.errors import LeaseHeldError, NewerStoreError, StoreError
from ringtrue.nightly_numbers import NightNumbers, Reading
from ringtrue.records import (
    Cause,
    Check,
    Finding,
    Interval,
    Observation,
    Party,
    Severity,
    State,
    Verdict,
)
from ringtrue.store import RunStatus, Store, open_store
from ringtrue.tables import METADATA

pytestmark = pytest.mark.postgres

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TTL = timedelta(minutes=2)


def server_binaries() -> Path | None:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = shutil.which("initdb")
    if versions:
        return versions[-1].parent
    return Path(found).resolve().parent if found else None


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Yield the directory of the server's socket; each test makes a database of its own."""
    binaries = server_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server on this machine; apt-get install postgresql")
    # PostgreSQL refuses to run as root, and its user must be able to enter the folder.
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="ringtrue-pg-"))
    if user:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    data = folder / "data"

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [binaries / program, *arguments], check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL
        )

    try:
        run("initdb", "-D", str(data), "-U", "ringtrue", "-A", "trust", "--no-sync")
        run("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", f"-k {folder} -h ''", "start")
        try:
            yield str(folder)
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    binaries = server_binaries()
    assert binaries is not None
    name = re.sub(r"\W", "_", request.node.name)[:60]
    subprocess.run([binaries / "createdb", "-h", server, "-U", "ringtrue", name], check=True)
    return f"postgresql://ringtrue@/{name}?host={server}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = open_store(url, clock=lambda: NOW)
    yield store
    store.close()


VERDICT = Verdict(
    "acme",
    "smollm2-135m",
    Check.LOGPROBS,
    State.WORSE,
    "int4",
    "r1",
    cause=Cause.NUMERICS,
    alternatives=(Cause.IDENTITY,),
    since=NOW,
    interval=Interval(0.1, None, 0.99),
)
OBSERVATION = Observation("acme", "context_curve", "kl", 0.3, "nats", 64, NOW, "r1", context_length=32)
FINDING = Finding(
    "acme",
    Check.LOGPROBS,
    "kl",
    Severity.FAIL,
    Party.PROVIDER,
    Cause.NUMERICS,
    "int4",
    evidence={"ids": [1, 2]},
)


def test_what_was_stored_comes_back_equal(store: Store) -> None:
    store.start_run("r1")
    store.add_observations([OBSERVATION])
    store.conclude("r1", [FINDING], [VERDICT])
    store.floor_put("k", {"p1": []})
    store.floor_put("k", {"p1": [[7, -0.1]]})
    store.finish_run("r1", RunStatus.OK)

    assert store.observations("r1") == (OBSERVATION,)
    assert store.findings("r1") == (FINDING,)
    assert store.current_verdicts() == (VERDICT,)
    assert store.floor_get("k") == {"p1": [[7, -0.1]]}
    assert [(run.id, run.status, run.ended) for run in store.runs()] == [("r1", RunStatus.OK, NOW)]


def test_alarms_are_raised_and_closed_and_the_newest_run_of_each_comparable_night_is_read(
    store: Store,
) -> None:
    numbers = (("kl_mean", 0.25, 64), ("k_min", 20.0, 64))
    for run, basis in (("r1", "b"), ("r2", "b"), ("r3", "other")):
        store.start_run(run, basis)
        store.add_observations(
            [
                Observation("acme", "p", metric, value, "nats", n, NOW, run, context_length=32)
                for metric, value, n in numbers
            ]
        )
    tokens = replace(FINDING, check=Check.TOKENS, severity=Severity.INFO)
    raised = Alarm("r1", "acme", Check.LOGPROBS, "kl_mean@32", NOW, NOW, 900.0, 730.0, 2.4, 0.1)
    store.conclude("r1", [replace(FINDING, value=0.25), tokens], [], [raised])
    closed = replace(raised, closed=NOW, by="ann", why="new kernels")
    store.conclude("r2", [], [], [closed])

    held = {(metric, 32): (value, n) for metric, value, n in numbers}
    curve = Reading(("kl_mean", "k_min"), believed=True)
    tonight = store.nights("acme", "b", curve, run="r2", counts=True, limit=90)
    assert tonight == (NightNumbers("r2", NOW, held),)
    before = store.nights("acme", "b", curve, run="r2", counts=False, limit=90)
    assert before == (NightNumbers("r1", NOW, held),)
    assert store.alarms("acme", Check.LOGPROBS) == (closed,)


def test_numbers_of_single_questions_are_read_by_their_label_with_the_runs_own_the_last(store: Store) -> None:
    for run, value in (("r1", 1.0), ("r2", 2.0**52 - 1), ("r3", 3.0)):
        store.start_run(run, run)
        store.add_observations(
            [Observation("acme", "prompts", "prompt_ids", value, "hash", 1, NOW, run, session="one_user.0a")]
        )

    read = store.labelled("acme", ["prompt_ids"], run="r2", limit=2)

    assert [night.run for night in read] == ["r3", "r2"]  # all began at one moment
    assert read[-1].values == {("prompt_ids", "one_user.0a"): 2.0**52 - 1}


def test_a_database_of_the_first_version_is_upgraded_and_keeps_what_it_held(store: Store, url: str) -> None:
    store.start_run("r1")
    store.conclude("r1", [FINDING], [VERDICT])
    with store._database.write() as connection:
        for statement in (
            "DROP TABLE alarm",
            "ALTER TABLE run DROP COLUMN basis",
            "ALTER TABLE finding DROP COLUMN since",
            "UPDATE alembic_version SET version_num = '0001'",
        ):
            connection.exec_driver_sql(statement)
    upgraded = open_store(url, clock=lambda: NOW)
    assert upgraded.findings("r1") == (FINDING,)
    assert [(run.id, run.basis) for run in upgraded.runs()] == [("r1", None)]
    with upgraded._database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    upgraded.close()


def test_a_failed_conclusion_leaves_nothing(store: Store) -> None:
    with pytest.raises(StoreError, match="refused"):
        store.conclude("nobody", [FINDING], [])
    assert store.findings("nobody") == ()


def test_of_two_cycles_at_once_exactly_one_gets_the_lease(store: Store, url: str) -> None:
    rival = open_store(url, clock=lambda: NOW)

    def acquire(pair: tuple[Store, str]) -> str | LeaseHeldError:
        try:
            pair[0].acquire_lease("cycle", pair[1], TTL)
        except LeaseHeldError as error:
            return error
        return pair[1]

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(acquire, [(store, "a"), (rival, "b")]))
    rival.close()
    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
    (refusal,) = [outcome for outcome in outcomes if isinstance(outcome, LeaseHeldError)]
    assert f"{winner} runs a cycle here since 2026-03-01 12:00:00Z" in str(refusal)


def test_two_collectors_that_start_together_upgrade_one_database_once(url: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        stores = list(pool.map(lambda _: open_store(url, clock=lambda: NOW), range(2)))
    with stores[0]._database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    for store in stores:
        store.close()


def test_a_database_of_a_newer_version_is_refused(store: Store, url: str) -> None:
    with store._database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NewerStoreError, match="schema 9999"):
        open_store(url, clock=lambda: NOW)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://ringtrue@/nowhere?host={server}", "cannot be reached"),
        ("postgresql://ringtrue:hunter2@127.0.0.1:1/x", "cannot be reached"),
    ],
)
def test_a_database_that_cannot_be_reached_is_said_without_the_password(
    server: str, address: str, said: str
) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        open_store(address.format(server=server), clock=lambda: NOW)
    assert "hunter2" not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r}"
