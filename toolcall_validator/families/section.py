"""Sections: an envelope around all the calls of a turn."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from toolcall_validator.families.json_body import first_of, skip_space
from toolcall_validator.families.parsed import Problem, Trouble
from toolcall_validator.families.reading import Reading


@dataclass(frozen=True, slots=True)
class Section:
    """What opens the calls inside, and what ends them all.

    ``close`` maps each opening marker to its closing one. ``read_call`` takes
    the reading and the place of ``call_open`` and returns where the call ends.
    """

    close: dict[str, str]
    call_open: str
    read_call: Callable[[Reading, int], int]

    def read(self, reading: Reading, found: re.Match[str]) -> int:
        """Add the calls of the section, or the single call, that opens here; return its end."""
        if found[0] not in self.close:
            end, place = self.read_call(reading, found.start()), len(reading.calls) - 1
            reading.problems.append(Problem(Trouble.NO_ENVELOPE, reading.calls[place].span, place))
            return end
        text, close, at, calls = reading.text, self.close[found[0]], found.end(), len(reading.calls)
        while not text.startswith(close, at := skip_space(text, at)) and at < len(text):
            if text.startswith(self.call_open, at):
                at = self.read_call(reading, at)
                continue
            stop = first_of(text, at, (self.call_open, close))
            reading.left(at, stop)
            at = stop
        if len(reading.calls) == calls:
            reading.wrong(Trouble.EMPTY_ENVELOPE, found.start(), at)
        if at < len(text):
            return at + len(close)
        reading.wrong(Trouble.UNCLOSED, found.start(), at)
        return at
