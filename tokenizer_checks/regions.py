"""What the differing places of a prompt hold: the evidence for a blame."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tokenizer_checks.alignment import Run
from tokenizer_checks.vocabulary import Vocabulary

ISLAND = 6  # equal tokens between two runs that are no more than chance inside one changed text
NEAR = 96  # tokens on each side that tell whether a place lies inside a definition
CLOSE = 8  # tokens on each side in which a date is completed

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
DATE = re.compile(
    rf"\d{{1,2}}(?:st|nd|rd|th)?[ \-]{_MONTH}\.?,?[ \-]\d{{2,4}}"
    rf"|{_MONTH}\.?[ \-]\d{{1,2}}(?:st|nd|rd|th)?,?[ \-]\d{{4}}"
    r"|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|\d{1,2}:\d{2}(?::\d{2})?",
    re.IGNORECASE,
)
"""A date or a time of day, as templates write them."""
DATE_LINE = re.compile(r"\bdate\b|\btoday\b|\bnow\b|current time", re.IGNORECASE)
TOOLS = re.compile(
    r'(?:"|&#34;)(?:parameters|properties|function)(?:"|&#34;)|</?(?:tools|functions?|\|tool)>'
    r"|available_tools|tool_(?:list|declare|def)|namespace functions|type \w+ = \(|# ?tools\b"
    r"|\byou (?:have access to|may call|can use)\b.{0,40}\b(?:tool|function)s",
    re.IGNORECASE | re.DOTALL,
)
"""Words and keys in which definitions of tools are written."""
_OPENED = re.compile(r"<(?:tools?|functions?)>|\[AVAILABLE_TOOLS\]|namespace functions")
_CLOSED = re.compile(r"</(?:tools?|functions?)>|\[/AVAILABLE_TOOLS\]|// namespace functions")


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring runs that are one change.

    ``text`` and ``used_text`` are what the expected and the used tokens of the
    region say, ``close`` and ``used_close`` with `CLOSE` tokens on each side.
    ``before`` and ``behind`` are `NEAR` expected tokens on each side. ``markers`` and ``used_markers``
    are the special IDs.
    """

    run: Run
    text: str
    used_text: str
    close: str
    used_close: str
    before: str
    behind: str
    markers: tuple[int, ...]
    used_markers: tuple[int, ...]

    @property
    def size(self) -> int:
        """Tokens that the change touches on the side where it touches more."""
        return max(self.run.missing, self.run.added)


def regions(
    expected: Sequence[int], used: Sequence[int], runs: Sequence[Run], vocabulary: Vocabulary
) -> Iterator[Region]:
    """Yield the regions of a difference, in order; every run lies in one of them.

    A run that could as well begin some tokens earlier is moved so that it
    begins with a marker: a turn that is missing is told as a whole turn, not
    as the end of one and the begin of the next.
    """
    special = vocabulary.special
    behind = 0  # where the region before ends
    for run in _joined(expected, runs, special):
        moved = _moved(expected, used, run, special, behind)
        behind = run.stop
        mine = expected[moved.start : moved.stop]
        theirs = used[moved.used_start : moved.used_stop]
        yield Region(
            moved,
            vocabulary.text_of(expected, moved.start, moved.stop),
            vocabulary.text_of(used, moved.used_start, moved.used_stop),
            _around(expected, moved.start, moved.stop, CLOSE, vocabulary),
            _around(used, moved.used_start, moved.used_stop, CLOSE, vocabulary),
            vocabulary.text_of(expected, max(0, moved.start - NEAR), moved.start),
            vocabulary.text_of(expected, moved.stop, min(len(expected), moved.stop + NEAR)),
            tuple(i for i in mine if i in special),
            tuple(i for i in theirs if i in special),
        )


def _joined(expected: Sequence[int], runs: Sequence[Run], special: frozenset[int]) -> Iterator[Run]:
    current: Run | None = None
    for run in runs:
        if current is None:
            current = run
        elif run.start - current.stop <= ISLAND and special.isdisjoint(expected[current.stop : run.start]):
            current = Run(current.start, run.stop, current.used_start, run.used_stop)
        else:
            yield current
            current = run
    if current is not None:
        yield current


def _moved(
    expected: Sequence[int], used: Sequence[int], run: Run, special: frozenset[int], behind: int
) -> Run:
    """Return a run of one side moved to the left as far as ``behind``, where it then begins with a marker."""
    ids, at, stop = (expected, run.start, run.stop) if run.missing else (used, run.used_start, run.used_stop)
    if run.missing and run.added:
        return run
    by, most = 0, run.start - behind
    while ids[at - by] not in special:
        if by == most or ids[at - by - 1] != ids[stop - by - 1]:
            return run
        by += 1
    return Run(run.start - by, run.stop - by, run.used_start - by, run.used_stop - by)


def natural(ids: Sequence[int], start: int, stop: int, vocabulary: Vocabulary) -> bool:
    """Tell whether ``ids[start:stop]`` is whole lines or turns, as a template leaves out, and no cut.

    A run that could as well begin earlier counts as whole if it is anywhere.
    """
    while True:
        if _border(ids, start, vocabulary) and _border(ids, stop, vocabulary):
            return True
        if start == 0 or ids[start - 1] != ids[stop - 1]:
            return False
        start, stop = start - 1, stop - 1


def slides(ids: Sequence[int], run: Run) -> Iterator[int]:
    """Yield where a run that is only missing could as well begin, its own start first."""
    yield run.start
    for step in (-1, 1):
        start, stop = run.start, run.stop
        while start + min(step, 0) >= 0 and stop + max(step, 0) <= len(ids):
            out, into = (start - 1, stop - 1) if step < 0 else (start, stop)
            if into >= len(ids) or ids[out] != ids[into]:
                break
            start, stop = start + step, stop + step
            yield start


def _border(ids: Sequence[int], at: int, vocabulary: Vocabulary) -> bool:
    if at in (0, len(ids)) or ids[at] in vocabulary.special or ids[at - 1] in vocabulary.special:
        return True
    before, behind = vocabulary.text(ids[at - 1 : at]), vocabulary.text(ids[at : at + 1])
    return before.endswith("\n") or behind.startswith("\n")


def within_tools(before: str, behind: str) -> bool:
    """Tell whether a place lies inside the definitions of tools, from the text on both sides."""
    opened = [found.start() for found in _OPENED.finditer(before)]
    if opened and not _CLOSED.search(before[opened[-1] :]):
        return True
    braces = before.count("{") - before.count("}"), behind.count("}") - behind.count("{")
    return max(braces) > 0 and bool(TOOLS.search(before) or TOOLS.search(behind))


def _around(ids: Sequence[int], start: int, stop: int, margin: int, vocabulary: Vocabulary) -> str:
    return vocabulary.text_of(ids, max(0, start - margin), min(len(ids), stop + margin))
