"""The database behind a store: upgraded, shared, refused, damaged, full."""

from __future__ import annotations

import hashlib
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from ringtrue.database import open_database
from ringtrue.errors import NewerStoreError, StoreError
from ringtrue.records import Check
from ringtrue.store import Store, open_store
from ringtrue.tables import METADATA
from tests.unit.ringtrue.kept import FINE, OBSERVED, WORSE, Clock

OLD_FINDING = (
    'INSERT INTO finding (id, run, endpoint, "check", code, severity, party, cause, message, '
    "alternatives, n, measured, evidence) VALUES (1, 'old', 'acme', 'logprobs', 'c', 'info', 'unknown', "
    "'unknown', 'as measured', '[]', 4, true, '{}')"
)


def downgrade_to_first(connection: Connection) -> None:
    """Make a store what the first migration left, with a run and a finding in it."""
    for statement in (
        "DROP TABLE alarm",
        "ALTER TABLE run DROP COLUMN basis",
        "ALTER TABLE finding DROP COLUMN since",
        "UPDATE alembic_version SET version_num = '0001'",
        "INSERT INTO run (id, started, status) VALUES ('old', '2026-02-01 02:00:00', 'ok')",
        OLD_FINDING,
    ):
        connection.exec_driver_sql(statement)


def test_sqlite_is_in_wal_mode_syncs_each_commit_and_its_readers_cannot_write(store: Store) -> None:
    with store._database.write() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10_000}
    with pytest.raises(StoreError, match="may not be written"), store._database.read() as connection:
        connection.exec_driver_sql("DELETE FROM run")


def test_the_migrations_make_exactly_the_tables_that_the_code_expects(store: Store) -> None:
    with store._database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_store_of_the_first_version_is_upgraded_and_keeps_what_it_held(path: Path, clock: Clock) -> None:
    database = open_database(f"sqlite:///{path}")
    with database.write() as connection:
        downgrade_to_first(connection)
    database.close()
    with pytest.raises(StoreError, match="written by an older ringtrue"):
        open_store(f"sqlite:///{path}", clock=clock, read_only=True)

    store = open_store(f"sqlite:///{path}", clock=clock)
    (run,) = store.runs()
    assert (run.id, run.basis) == ("old", None)
    (finding,) = store.findings("old")
    assert (finding.message, finding.since) == ("as measured", None)
    store.start_run("new", "basis")
    assert [(run.id, run.basis) for run in store.runs()] == [("new", "basis"), ("old", None)]
    assert store.alarms("acme", Check.LOGPROBS) == ()
    with store._database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    store.close()


def test_an_open_store_can_be_read_by_another_process_while_it_writes(store: Store, path: Path) -> None:
    store.conclude("r1", [], [WORSE])
    reader = open_store(f"sqlite:///{path}", clock=Clock(), read_only=True)
    store.conclude("r1", [], [FINE])
    assert reader.current_verdicts() == (FINE, WORSE)
    reader.close()


def test_a_reader_of_a_store_that_does_not_exist_is_told_so_and_creates_nothing(path: Path) -> None:
    with pytest.raises(StoreError, match="no such store yet"):
        open_store(f"sqlite:///{path}", clock=Clock(), read_only=True)
    assert not path.exists()


def test_a_database_of_a_newer_version_is_refused_and_left_untouched(path: Path) -> None:
    open_store(f"sqlite:///{path}", clock=Clock()).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    for read_only in (False, True):
        with pytest.raises(NewerStoreError, match="schema 9999, this one knows up to") as caught:
            open_store(f"sqlite:///{path}", clock=Clock(), read_only=read_only)
        assert caught.value.exit_code == 2
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_another_programs_database_is_refused_and_left_untouched(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE invoice (id INTEGER)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not ringtrue's"):
        open_store(f"sqlite:///{path}", clock=Clock())
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_untouched(path: Path) -> None:
    path.write_bytes(b"name,amount\n" * 200)
    with pytest.raises(StoreError, match="is not an SQLite database"):
        open_store(f"sqlite:///{path}", clock=Clock())
    assert path.read_bytes() == b"name,amount\n" * 200


def test_a_damaged_database_is_reported_as_damaged(store: Store, path: Path) -> None:
    store.add_observations([OBSERVED] * 500)
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        open_store(f"sqlite:///{path}", clock=Clock())


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"folder does not exist\. Create .*nowhere"):
        open_store(f"sqlite:///{tmp_path}/nowhere/x.db", clock=Clock())


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        open_store(f"sqlite:///{tmp_path}", clock=Clock())


def test_a_locked_database_is_reported_as_held_by_another(store: Store, path: Path) -> None:
    with store._database.write() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=0")
    rival = sqlite3.connect(path, isolation_level=None)
    rival.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process holds it"):
        store.add_observations([OBSERVED])
    rival.close()
    store.add_observations([OBSERVED])
    assert store.observations("r1") == (OBSERVED,)


def test_a_full_database_refuses_the_whole_batch_and_keeps_what_it_had(store: Store) -> None:
    store.add_observations([OBSERVED])
    with store._database.write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError, match="the disk is full"):
        store.add_observations([OBSERVED] * 5_000)
    assert store.observations("r1") == (OBSERVED,)


FILL = """
import resource, sys
from datetime import UTC, datetime
from ringtrue.errors import StoreError
from ringtrue.records import Observation
from ringtrue.store import open_store

path, limit = sys.argv[1], int(sys.argv[2])
now = datetime(2026, 3, 1, tzinfo=UTC)
store = open_store(f"sqlite:///{path}", clock=lambda: now)
store.start_run("r1")
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
acknowledged = 0
try:
    for _ in range(200):
        store.add_observations([Observation("acme", "p", "kl", 1.0, "nats", 1, now, "r1")] * 100)
        acknowledged += 100
except StoreError as error:
    print(acknowledged, error)
"""


def test_when_the_system_refuses_to_write_more_every_acknowledged_row_stays_readable(path: Path) -> None:
    limit = 400_000
    child = subprocess.run(
        [sys.executable, "-c", FILL, str(path), str(limit)], capture_output=True, text=True, check=True
    )
    acknowledged, message = child.stdout.split(" ", 1)
    assert 0 < int(acknowledged) < 20_000
    assert f"{path}: the disk refused to read or write" in message
    assert "Check space" in message
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != limit

    store = open_store(f"sqlite:///{path}", clock=Clock())
    assert len(store.observations("r1")) == int(acknowledged)
    store.close()
