"""JSON as RFC 8259 means it, and what exactly is wrong when it is not that."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson


class Flaw(StrEnum):
    """Why a text is not strict JSON."""

    NOT_JSON = "not_json"
    NAN = "nan"  # NaN, Infinity, or a number beyond a double, which clients read as Infinity
    DUPLICATE_KEY = "duplicate_key"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value, or why there is none; with ``NAN`` and ``DUPLICATE_KEY`` it is what clients make of it."""

    value: Any = None
    flaw: Flaw | None = None


class _Watch:
    """Notes what Python's parser forgives."""

    def __init__(self) -> None:
        self.flaw: Flaw | None = None

    def constant(self, name: str) -> float:
        self.flaw = Flaw.NAN
        return float(name)

    def number(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            self.flaw = Flaw.NAN
        return value

    def integer(self, text: str) -> int | float:
        if len(text) > 308 and math.isinf(float(text)):
            self.flaw = Flaw.NAN
            return float(text)
        return int(text)

    def pairs(self, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        listed = list(pairs)
        found = dict(listed)
        if len(found) < len(listed) and self.flaw is None:
            self.flaw = Flaw.DUPLICATE_KEY
        return found


def parse_strict(text: str) -> Parsed:
    """Return the value of a JSON text and its flaw, if it has one. Never raises."""
    try:
        value = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return _watched(text)
    return Parsed(value) if _all_keys_kept(text, value) else _watched(text)


def _all_keys_kept(text: str, value: object) -> bool:
    """Tell whether no key came twice, as far as colons tell; ``False`` where they don't.

    Each key needs its colon, and one that came twice lost it with its first
    value: as many colons as in the value written again means that none did.
    """
    if ":" not in text:
        return True
    if "\\u003" in text:  # an escaped colon would be written again as a plain one
        return False
    try:
        return text.count(":") == orjson.dumps(value).count(b":")
    except TypeError:  # nested deeper than it writes
        return False


def _watched(text: str) -> Parsed:
    watch = _Watch()
    try:
        value = json.loads(
            text,
            parse_constant=watch.constant,
            parse_float=watch.number,
            parse_int=watch.integer,
            object_pairs_hook=watch.pairs,
        )
    except (ValueError, RecursionError):
        return Parsed(flaw=Flaw.NOT_JSON)
    return Parsed(value, watch.flaw)


def complete_object(text: str) -> bool:
    """Tell whether a text is one whole JSON object."""
    found = parse_strict(text)
    return found.flaw is not Flaw.NOT_JSON and isinstance(found.value, dict)


def first_value(text: str, start: int = 0) -> tuple[Any, int] | None:
    """Return the JSON value that begins at ``start`` and where it ends, or ``None``."""
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def completed(text: str) -> bool:
    """Tell whether a text is the beginning of a JSON object that lost its end."""
    stack: list[str] = []
    quoted = escaped = False
    for sign in text:
        if quoted:
            if escaped:
                escaped = False
            elif sign == "\\":
                escaped = True
            elif sign == '"':
                quoted = False
        elif sign == '"':
            quoted = True
        elif sign in "{[":
            stack.append("}" if sign == "{" else "]")
        elif sign in "}]" and (not stack or stack.pop() != sign):
            return False
    if not stack or not text.lstrip().startswith("{"):
        return False
    closing = "".join(reversed(stack))
    return any(_is_json(body + end + closing) for body in _bodies(text, quoted) for end in _ENDS)


_ENDS = ("", "null", ":null", '"k":null', "0")


def _bodies(text: str, quoted: bool) -> Iterable[str]:
    """Yield the text as it can stand before a closing bracket: without a cut word, escape or comma."""
    if quoted:
        yield text + '"'
        # A cut escape: drop the backslash and what there is of \uXXXX.
        slash = text.rfind("\\", len(text) - 6)
        if slash >= 0:
            yield text[:slash] + '"'
        return
    yield text
    bare = text.rstrip()
    if bare.endswith(","):
        yield bare[:-1]
    yield re.sub(r"[\w+.-]+$", "", bare)  # a cut literal or number


def _is_json(text: str) -> bool:
    return parse_strict(text).flaw is not Flaw.NOT_JSON
