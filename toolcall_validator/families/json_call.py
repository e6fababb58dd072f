"""A call that is one JSON object, with its name and its arguments among the keys."""

from __future__ import annotations

from typing import Any

from toolcall_validator.families.json_body import members
from toolcall_validator.families.parsed import RawCall, Region, Trouble
from toolcall_validator.strict_json import first_value

ARGUMENTS = ("arguments", "parameters")


def call_in(
    text: str, start: int, end: int, span: Region, keys: tuple[str, ...] = ARGUMENTS
) -> tuple[RawCall, tuple[Trouble, ...]]:
    """Return the call written in ``[start, end)`` as far as it goes, and what is wrong with it.

    ``keys`` are the names under which the arguments may stand.
    """
    piece = text[start:end]
    places, stop = members(piece, 0)
    name = _string(piece, places.get("name"))
    key = next((key for key in keys if key in places), None)
    arguments = "" if key is None else piece[slice(*places[key])].rstrip()
    troubles: tuple[Trouble, ...] = () if stop is not None else (Trouble.NOT_JSON,)
    troubles += () if name else (Trouble.NO_NAME,)
    troubles += () if key is not None else (Trouble.NO_ARGUMENTS,)
    return RawCall(name or "", arguments, _string(piece, places.get("id")), span), troubles


def _string(text: str, place: Region | None) -> str | None:
    found: tuple[Any, int] | None = None if place is None else first_value(text, place[0])
    return found[0] if found is not None and isinstance(found[0], str) else None
