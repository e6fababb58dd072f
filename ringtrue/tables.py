"""The tables of the store, as the newest migration leaves them.

No column holds what was asked or answered: a prompt or a completion is never stored.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    TypeDecorator,
)


class UtcDateTime(TypeDecorator[datetime]):
    """A time of day in UTC, aware on both sides; SQLite itself knows no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return the time in UTC; a naive one raises `ValueError`."""
        if value is None:
            return None
        if value.tzinfo is None:
            msg = "a time without a time zone cannot be stored"
            raise ValueError(msg)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - as above
        """Return the time, aware."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _run_column() -> Column[str]:
    return Column("run", String, ForeignKey("run.id"), nullable=False, index=True)


RUN = Table(
    "run",
    METADATA,
    Column("id", String, primary_key=True),
    Column("started", UtcDateTime, nullable=False),
    Column("ended", UtcDateTime),
    Column("status", String, nullable=False),
    Column("reason", String),
    Column("basis", String),
)

OBSERVATION = Table(
    "observation",
    METADATA,
    Column("id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True),
    _run_column(),
    Column("endpoint", String, nullable=False),
    Column("probe", String, nullable=False),
    Column("metric", String, nullable=False),
    Column("value", Float, nullable=False),
    Column("unit", String, nullable=False),
    Column("n", Integer, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("context_length", Integer),
    Column("stratum", String, nullable=False),
    Column("session", String),
    Index(None, "endpoint", "metric", "at"),
)

FINDING = Table(
    "finding",
    METADATA,
    Column("id", Integer, primary_key=True),
    _run_column(),
    Column("endpoint", String, nullable=False),
    Column("check", String, nullable=False),
    Column("code", String, nullable=False),
    Column("severity", String, nullable=False),
    Column("party", String, nullable=False),
    Column("cause", String, nullable=False),
    Column("message", String, nullable=False),
    Column("alternatives", JSON, nullable=False),
    Column("effect", Float),
    Column("unit", String),
    Column("interval", JSON(none_as_null=True)),
    Column("n", Integer, nullable=False),
    Column("detectable_effect", Float),
    Column("onset", Integer),
    Column("metric", String),
    Column("value", Float),
    Column("measured", Boolean, nullable=False),
    Column("evidence", JSON, nullable=False),
    Column("since", UtcDateTime),
    Index(None, "endpoint", "check"),
)

VERDICT = Table(
    "verdict",
    METADATA,
    Column("id", Integer, primary_key=True),
    _run_column(),
    Column("endpoint", String, nullable=False),
    Column("model", String, nullable=False),
    Column("check", String, nullable=False),
    Column("verdict", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("cause", String),
    Column("alternatives", JSON, nullable=False),
    Column("since", UtcDateTime),
    Column("metric", String),
    Column("value", Float),
    Column("unit", String),
    Column("interval", JSON(none_as_null=True)),
    Column("n", Integer, nullable=False),
    Column("detectable_effect", Float),
    Column("onset", Integer),
    Index(None, "endpoint", "check", "id"),
)

ALARM = Table(
    "alarm",
    METADATA,
    Column("run", String, ForeignKey("run.id"), primary_key=True),
    Column("endpoint", String, primary_key=True),
    Column("check", String, primary_key=True),
    Column("stream", String, primary_key=True),
    Column("since", UtcDateTime, nullable=False),
    Column("raised", UtcDateTime, nullable=False),
    Column("evidence", Float, nullable=False),
    Column("threshold", Float, nullable=False),
    Column("level", Float, nullable=False),
    Column("spread", Float, nullable=False),
    Column("closed", UtcDateTime),
    Column("until", UtcDateTime),
    Column("by", String),
    Column("why", String),
    Index(None, "endpoint", "check"),
)

FLOOR = Table(
    "floor",
    METADATA,
    Column("key", String, primary_key=True),
    Column("top_k", JSON, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

LEASE = Table(
    "lease",
    METADATA,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("acquired", UtcDateTime, nullable=False),
    Column("expires", UtcDateTime, nullable=False),
)
