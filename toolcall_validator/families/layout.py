"""The frame that most formats share: reasoning, content, and calls behind markers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from toolcall_validator.families.parsed import Parsed, Schemas, Trouble
from toolcall_validator.families.reading import Reading


@dataclass(frozen=True, slots=True)
class Layout:
    """How a family writes a turn.

    ``opener`` matches where a call or a section of calls begins; ``read`` takes
    the reading and such a match, adds what it finds and returns where content
    goes on, or ``None`` for what turns out to be no call. ``ends`` are tokens that end a turn, ``strays``
    markers that mean a broken call when they stand alone, and ``think`` opens
    and closes the reasoning; a template may have written the opening one
    into the prompt already.
    """

    opener: re.Pattern[str]
    read: Callable[[Reading, re.Match[str]], int | None]
    ends: tuple[str, ...]
    strays: tuple[str, ...] = ()
    think: tuple[str, str] | None = ("<think>", "</think>")

    def parse(self, text: str, schemas: Schemas) -> Parsed:
        """Take a completion apart. Never raises."""
        end = without_ends(text, self.ends)
        reading = Reading(text[:end], schemas)
        start, reasoning, before = 0, "", ""
        if self.think is not None:
            start, reasoning, before = self._explicit_reasoning(reading, end)
        self._walk(reading, start, end)
        if self.think is not None and not reasoning and start == 0:
            start, reasoning = self._implicit_reasoning(reading, end)
        content = before + self._content(reading, start, end)
        return reading.parsed(content, reasoning)

    def _walk(self, reading: Reading, start: int, end: int) -> None:
        at = start
        while (found := self.opener.search(reading.text, at, end)) is not None:
            stop = self.read(reading, found)
            at = found.end() if stop is None else stop
            if stop is not None:
                reading.taken.append((found.start(), stop))

    def _explicit_reasoning(self, reading: Reading, end: int) -> tuple[int, str, str]:
        """Find reasoning that the completion opens itself: where it ends, its text, the text before it."""
        text, (opened, closed) = reading.text, self.think or ("", "")
        call = self.opener.search(text, 0, end)
        begin = text.find(opened, 0, end if call is None else call.start())
        if begin < 0 or text.find(closed, 0, begin) >= 0:
            return 0, "", ""
        inside = begin + len(opened)
        stop = text.find(closed, inside, end)
        if stop >= 0:
            self._calls_in_reasoning(reading, inside, stop)
            return stop + len(closed), text[inside:stop], text[:begin]
        stop = end if call is None else call.start()
        reading.wrong(Trouble.REASONING_UNCLOSED, begin, stop)
        return stop, text[inside:stop], text[:begin]

    def _calls_in_reasoning(self, reading: Reading, start: int, end: int) -> None:
        """Name the whole calls among the thoughts; a mere mention of a marker is none."""
        inner = Reading(reading.text[:end], reading.schemas)
        self._walk(inner, start, end)
        broken = {problem.call for problem in inner.problems}
        for place, call in enumerate(inner.calls):
            if place not in broken:
                reading.wrong(Trouble.CALL_IN_REASONING, *call.span)

    def _implicit_reasoning(self, reading: Reading, end: int) -> tuple[int, str]:
        """Find reasoning that the prompt opened: everything before the first closing mark outside calls."""
        opened, closed = self.think or ("", "")
        for first, last in reading.gaps(0, end):
            stop = reading.text.find(closed, first, last)
            if reading.text.find(opened, first, last if stop < 0 else stop) >= 0:
                break
            if stop >= 0:
                reading.without_calls_in(0, stop)
                return stop + len(closed), reading.text[:stop]
        return 0, ""

    def _content(self, reading: Reading, start: int, end: int) -> str:
        pieces = []
        marks = (*self.strays, *(self.think or ()))
        for first, last in reading.gaps(start, end):
            piece = reading.text[first:last]
            pieces.append(piece if piece.strip() else "")
            for mark in marks:
                for found in re.finditer(re.escape(mark), piece):
                    at = first + found.start()
                    reading.left(at, at + len(mark), Trouble.STRAY_MARKER)
        return "".join(pieces)


def without_ends(text: str, ends: tuple[str, ...]) -> int:
    """Return where the text ends without the tokens that end a turn."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        mark = next((mark for mark in ends if text.endswith(mark, 0, end)), None)
        if mark is None:
            return end
        end -= len(mark)
