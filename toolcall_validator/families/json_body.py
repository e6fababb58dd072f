"""JSON inside a completion: where it ends, although its strings may hold any marker."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolcall_validator.families.parsed import Region, Trouble
from toolcall_validator.strict_json import first_value


@dataclass(frozen=True, slots=True)
class Body:
    """A stretch of text up to the marker that closes it.

    ``[start, end)`` is the text without the white space around it, ``next``
    where reading goes on. ``whole`` tells whether it is one JSON value,
    ``closed`` whether its own marker followed.
    """

    start: int
    end: int
    next: int
    whole: bool
    closed: bool

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What is wrong with it."""
        cut = () if self.closed else (Trouble.UNCLOSED,)
        return cut if self.whole else (*cut, Trouble.NOT_JSON)


def skip_space(text: str, at: int) -> int:
    """Return the position of the next character that is no white space, or the end."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


_SPACE = re.compile(r"\s*")


def read_body(text: str, at: int, close: str | None, borders: tuple[str, ...]) -> Body:
    """Return the body that begins at ``at``.

    It ends before ``close``, or before one of ``borders`` when its own marker
    is missing. Where the format has no closing marker (``None``) a border
    closes it, and so does the end of the text after a whole value. Markers in
    the strings of a JSON value don't end it.
    """
    start = skip_space(text, at)
    value = first_value(text, start)
    after = start if value is None else skip_space(text, value[1])
    stops = borders if close is None else (close, *borders)
    at_stop = text.startswith(stops, after) or _cut_marker(text, after, stops)
    whole = value is not None and (after == len(text) or at_stop)
    stop = after if whole else first_of(text, after, stops)
    end = start + len(text[start:stop].rstrip())
    if close is None:
        return Body(start, end, stop, whole=whole, closed=whole or stop < len(text))
    closed = text.startswith(close, stop)
    return Body(start, end, stop + len(close) * closed, whole=whole, closed=closed)


def _cut_marker(text: str, at: int, markers: tuple[str, ...]) -> bool:
    """Tell whether the text ends within one of the markers."""
    return any(len(text) - at < len(marker) and marker.startswith(text[at:]) for marker in markers)


def first_of(text: str, at: int, markers: tuple[str, ...]) -> int:
    """Return where the first of the markers stands, or the end of the text."""
    places = [text.find(marker, at) for marker in markers]
    return min((place for place in places if place >= 0), default=len(text))


def members(text: str, at: int) -> tuple[dict[str, Region], int | None]:
    """Return the places of an object's values by key, and where the object ends.

    The end is ``None`` for what is no object or breaks off: the places then
    are those up to there, and the last value may reach to the end of the text.
    """
    places: dict[str, Region] = {}
    if not text.startswith("{", at):
        return places, None
    at = skip_space(text, at + 1)
    if text.startswith("}", at):
        return places, at + 1
    while True:
        key = first_value(text, at)
        colon = len(text) if key is None else skip_space(text, key[1])
        if key is None or not isinstance(key[0], str) or not text.startswith(":", colon):
            return places, None
        start = skip_space(text, colon + 1)
        value = first_value(text, start)
        places[key[0]] = (start, len(text) if value is None else value[1])
        if value is None:
            return places, None
        at = skip_space(text, value[1])
        if text.startswith("}", at):
            return places, at + 1
        if not text.startswith(",", at):
            return places, None
        at = skip_space(text, at + 1)
