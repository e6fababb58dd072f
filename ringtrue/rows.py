"""Records as rows of the store, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import RowMapping

from ringtrue.alarm import Alarm
from ringtrue.records import (
    Cause,
    Check,
    Finding,
    Interval,
    Observation,
    Party,
    Severity,
    State,
    Stratum,
    Verdict,
)

Record = TypeVar("Record", Observation, Finding, Verdict, Alarm)

_READERS: Mapping[str, Callable[[Any], Any]] = {
    "alternatives": lambda causes: tuple(Cause(cause) for cause in causes),
    "cause": Cause,
    "check": Check,
    "interval": lambda interval: Interval(**interval),
    "party": Party,
    "severity": Severity,
    "stratum": Stratum,
    "verdict": State,
}


def to_row(record: Observation | Finding | Verdict | Alarm) -> dict[str, Any]:
    """Return the record's fields as column values: enums as text, intervals as JSON objects."""
    return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def from_row(kind: type[Record], row: RowMapping) -> Record:
    """Return the record a row was made from; columns that are no fields are passed over."""
    return kind(**{field.name: _read(field.name, row[field.name]) for field in fields(kind)})


def _plain(value: Any) -> Any:
    match value:
        case StrEnum():
            return value.value
        case Interval():
            return asdict(value)
        case tuple():
            return [_plain(part) for part in value]
        case _:
            return value


def _read(name: str, value: Any) -> Any:
    return _READERS[name](value) if name in _READERS and value is not None else value
