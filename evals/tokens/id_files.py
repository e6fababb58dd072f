"""Token IDs in files: a JSON list, an answer that holds them, or recorded exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from evals.tokens.chats import chat_of
from evals.tokens.own import Ids
from ringtrue.errors import UsageError
from ringtrue.interchange import from_record
from ringtrue.records import Exchange
from tokenizer_checks.templates.chat import Chat

_FIELDS = ("prompt_token_ids", "token_ids", "tokens", "ids", "input_ids")
_GREATEST = 2**31  # no vocabulary comes near
_REMEDY = (
    "Write a JSON list of whole numbers, an object with prompt_token_ids, or exchanges as "
    "`ringtrue probe --record` does, one a line"
)


@dataclass(frozen=True, slots=True)
class StoredIds:
    """The IDs of one prompt from a file.

    ``chat`` and ``at`` are there where the file holds the request as well;
    then ``ids`` may be ``None``, and ``count`` is what the server counted.
    """

    name: str
    ids: Ids | None
    count: int | None = None
    chat: Chat | None = None
    at: datetime | None = None


def read_ids(path: Path) -> Mapping[str, StoredIds]:
    """Return the prompts of a file by name; one without a name is called ``prompt``.

    Raises:
        UsageError: the file can't be read, holds no IDs, or holds something
            else for an ID: text, a fraction, a number below 0; the place is named.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    found = {stored.name: stored for stored in _stored(data, path)}
    if not found:
        raise UsageError("holds no token IDs", where=str(path), remedy=_REMEDY)
    return found


def _stored(data: bytes, path: Path) -> Iterator[StoredIds]:
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError:
        for at, line in enumerate(data.splitlines(), start=1):
            if line.strip():
                yield _of_line(line, f"{path}:{at}")
        return
    yield _of_value(whole, str(path))


def _of_line(line: bytes, where: str) -> StoredIds:
    try:
        return _of_value(orjson.loads(line), where)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error}", where=where, remedy=_REMEDY) from error


def _of_value(value: Any, where: str) -> StoredIds:
    if isinstance(value, list):
        return StoredIds("prompt", _ids(value, where))
    if isinstance(value, dict) and "request" in value:
        return _of_exchange(value, where)
    field = next((name for name in _FIELDS if isinstance(value, dict) and name in value), None)
    if field is None:
        raise UsageError("holds no token IDs", where=where, remedy=_REMEDY)
    return StoredIds(str(value.get("id") or "prompt"), _ids(value[field], f"{where}, {field}"))


def _of_exchange(record: Mapping[str, Any], where: str) -> StoredIds:
    try:
        exchange = from_record(record)
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"not an exchange: {error}", where=where, remedy=_REMEDY) from error
    ids = exchange.prompt_token_ids
    return StoredIds(
        exchange.id or where,
        None if ids is None else _ids(list(ids), f"{where}, prompt_token_ids"),
        exchange.usage.prompt_tokens if exchange.usage else None,
        chat_of(exchange.request),
        _time(exchange, record),
    )


def _time(exchange: Exchange, record: Mapping[str, Any]) -> datetime | None:
    return exchange.at if "at" in record else None


def _ids(value: Any, where: str) -> Ids:
    if not isinstance(value, list):
        raise UsageError("is no list of token IDs", where=where, remedy=_REMEDY)
    for at, token_id in enumerate(value):
        if type(token_id) is not int or not 0 <= token_id < _GREATEST:
            said = type(token_id).__name__ if type(token_id) is not int else f"{token_id:,}"
            raise UsageError(f"no token ID at index {at:,} but {said}", where=where, remedy=_REMEDY)
    return tuple(value)
