"""Framing of server-sent events (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its ``data`` lines joined by newlines, and its name (``""`` when unnamed)."""

    data: str
    name: str = ""


class SSEDecoder:
    r"""Turns bytes into events, whatever the socket made of them.

    Invariant: the events returned over all calls depend on the bytes alone,
    not on how they were split. Lines end with CRLF, LF or CR; a leading BOM
    and comments are dropped; broken UTF-8 becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._head: bytes | None = b""  # held back while it may become a BOM; None after the start
        self._partial: list[bytes] = []  # pieces of the line that has not ended yet
        self._after_cr = False  # this CR ended a line already: an LF that follows belongs to it
        self._data: list[str] = []
        self._name = ""

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that ``data`` completes."""
        events: list[Event] = []
        if self._head is not None:
            self._head += data
            if len(self._head) < len(_BOM) and _BOM.startswith(self._head):
                return events
            data, self._head = self._head.removeprefix(_BOM), None
        if not data:
            return events
        if self._after_cr:
            data = data.removeprefix(b"\n")
        start = 0
        for end in _LINE_END.finditer(data):
            self._partial.append(data[start : end.start()])
            self._end_line(events)
            start = end.end()
        self._after_cr = data.endswith(b"\r")
        self._partial.append(data[start:])
        return events

    def close(self) -> list[Event]:
        """Return the event that the end of the body cut short, if any.

        The standard discards it; here nothing that was received is lost, and a
        final ``data: [DONE]`` without its blank line counts.
        """
        events: list[Event] = []
        self._partial.append(self._head or b"")
        self._head = None
        self._end_line(events)
        self._end_line(events)
        return events

    def _end_line(self, events: list[Event]) -> None:
        line = b"".join(self._partial)
        self._partial = []
        if not line:
            if self._data:
                events.append(Event("\n".join(self._data), self._name))
            self._data, self._name = [], ""
            return
        field, _, raw = line.partition(b":")
        value = raw.removeprefix(b" ").decode("utf-8", "replace")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
