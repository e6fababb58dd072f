"""A database that is safe to write to: opened, checked, migrated, its faults put in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from ringtrue.database_faults import describe
from ringtrue.errors import NewerStoreError, StoreError

BUSY_TIMEOUT_S = 10.0
_MIGRATION_LOCK = 0x72696E67  # "ring", so that two collectors do not upgrade one PostgreSQL at once


@dataclass(frozen=True, slots=True)
class Database:
    """One database, with a way in for writing and one for reading.

    SQLite gets a single writing connection, which is its queue as well, and
    readers that cannot write. On PostgreSQL both are the same pool.
    """

    where: str
    writer: Engine
    reader: Engine

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that is committed, durably, when the block ends, or not at all.

        Raises:
            StoreError: The database refused.
        """
        with translated(self.where), self.writer.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a consistent view.

        Raises:
            StoreError: The database refused.
        """
        with translated(self.where), self.reader.connect() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections; SQLite's writer goes last and folds the WAL in."""
        self.reader.dispose()
        self.writer.dispose()


def open_database(url: str, *, read_only: bool = False) -> Database:
    """Return the database at ``url``, brought to the newest schema.

    With ``read_only`` nothing is created, changed or upgraded.

    Raises:
        NewerStoreError: A newer ringtrue wrote it; it is left untouched.
        StoreError: It cannot be opened, is damaged, or is no store of ringtrue.
    """
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        database, exists = _sqlite(Path(address.database or ""))
        if read_only and not exists:
            raise StoreError("no such store yet", where=database.where, remedy="`ringtrue probe` creates it")
    else:
        database, exists = _postgresql(address), True
    try:
        _prepare(database, exists=exists, read_only=read_only)
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn what the database driver raises into a `StoreError` that says what to do."""
    try:
        yield
    except SQLAlchemyError as error:
        message, remedy = describe(error)
        raise StoreError(message, where=where, remedy=remedy) from error


def _sqlite(path: Path) -> tuple[Database, bool]:
    if not path.parent.is_dir():
        raise StoreError("its folder does not exist", where=str(path), remedy=f"Create {path.parent}")
    if path.is_dir():
        raise StoreError("is a folder", where=str(path), remedy="Name a file in it")
    reading = {"uri": "true", "mode": "ro"}
    writer = _engine(URL.create("sqlite", database=str(path)), pool_size=1, max_overflow=0)
    reader = _engine(URL.create("sqlite", database=f"file:{quote(str(path.resolve()))}", query=reading))
    event.listen(writer, "connect", _prepare_writer)
    # The driver's own BEGIN comes too late and takes no lock: two writers would meet at commit.
    event.listen(writer, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return Database(str(path), writer, reader), path.exists()


def _prepare_writer(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _postgresql(address: URL) -> Database:
    where = address.render_as_string(hide_password=True)
    engine = _engine(address.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    return Database(where, engine, engine)


def _engine(address: URL, **options: Any) -> Engine:
    connect = (
        {"timeout": BUSY_TIMEOUT_S} if address.get_backend_name() == "sqlite" else {"connect_timeout": 10}
    )
    return create_engine(
        address,
        connect_args=connect,
        hide_parameters=True,
        json_serializer=lambda value: orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode(),
        json_deserializer=orjson.loads,
        **options,
    )


def _prepare(database: Database, *, exists: bool, read_only: bool) -> None:
    """Check before the first write, since even switching to WAL would change a foreign file."""
    config = _migrations()
    newest = ScriptDirectory.from_config(config).get_current_head()
    revision = None
    if exists:
        with database.read() as connection:
            revision = _revision(connection, config, database.where)
    if revision == newest:
        return
    if read_only:
        raise StoreError(
            "written by an older ringtrue", where=database.where, remedy="`ringtrue nightly` upgrades it"
        )
    with database.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        _revision(connection, config, database.where)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _revision(connection: Connection, config: Config, where: str) -> str | None:
    """Return the schema's revision, ``None`` for an empty database; refuse what is not ours."""
    revision = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision is None and inspect(connection).get_table_names():
        raise StoreError(
            "holds tables that are not ringtrue's", where=where, remedy="Name another file or database"
        )
    if revision is not None and revision not in known:
        raise NewerStoreError(
            f"written by a newer ringtrue (schema {revision}, this one knows up to {max(known)})",
            where=where,
            remedy="Upgrade ringtrue, or name another store",
        )
    return revision


def _migrations() -> Config:
    config = Config()
    folder = str(Path(__file__).with_name("migrations"))
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
