"""Which tokens of one list are kept in another: runs that are missing, added or replaced."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

Ids = Sequence[int]
Block = tuple[int, int, int]  # where equal tokens begin in both lists, and how many there are

GRAMS = (4, 1)  # lengths of the sequences that hold two lists together where they differ much
STEPS_A_TOKEN = 4  # work that the shortest edit script may take, so that time stays linear
FEWEST_STEPS = 256


class Change(StrEnum):
    """What happened to a run of tokens."""

    MISSING = "missing"
    ADDED = "added"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Run:
    """``expected[start:stop]`` stands where the other list has ``used[used_start:used_stop]``.

    At least one of the two is not empty, and tokens around a run are equal.
    """

    start: int
    stop: int
    used_start: int
    used_stop: int

    @property
    def change(self) -> Change:
        """What happened to the expected tokens."""
        if self.used_start == self.used_stop:
            return Change.MISSING
        return Change.ADDED if self.start == self.stop else Change.REPLACED

    @property
    def missing(self) -> int:
        """How many expected tokens the run leaves out."""
        return self.stop - self.start

    @property
    def added(self) -> int:
        """How many tokens the run brings in."""
        return self.used_stop - self.used_start


def align(expected: Ids, used: Ids) -> tuple[Run, ...]:
    """Return the runs that differ, in order; none for equal lists.

    Replacing every run in ``expected`` gives ``used``, and the first run begins
    at the first index at which the two differ. Common ends are set aside. What
    is left gets a shortest edit script (Myers, "An O(ND) difference algorithm
    and its variations", 1986) as long as that takes no more than
    `STEPS_A_TOKEN` steps a token; beyond that, sequences that occur once in
    both lists in the same order hold the lists together (as in patience
    diff) and each gap between them is treated alike. A gap without any is one
    replaced run. Time is near-linear in the length of both.
    """
    return tuple(_between(_matched(tuple(expected), tuple(used), 0, 0, GRAMS), len(expected), len(used)))


def replaced(expected: Ids, used: Ids, runs: Iterable[Run]) -> tuple[int, ...]:
    """Return ``expected`` with the tokens of ``used`` in place of each run."""
    result: list[int] = []
    at = 0
    for run in runs:
        result += [*expected[at : run.start], *used[run.used_start : run.used_stop]]
        at = run.stop
    return (*result, *expected[at:])


def shared_head(one: Ids, other: Ids) -> int:
    """Return how many tokens both lists begin with."""
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))


def nearest(right: Sequence[tuple[int, ...]], used: Sequence[int]) -> tuple[int, ...]:
    """Return which of several right lists of IDs ``used`` is to be held against.

    An equal one, else the one with most tokens in common at both ends, the
    first among equals: a date that is right by the server's calendar is then
    not blamed for a fault beside it.

    Raises:
        ValueError: ``right`` is empty.
    """
    seen = tuple(used)
    if seen in right:
        return seen
    return max(right, key=lambda ids: shared_head(ids, seen) + shared_head(ids[::-1], seen[::-1]))


def _between(blocks: Iterable[Block], expected: int, used: int) -> Iterator[Run]:
    at = used_at = 0
    for start, used_start, length in (*blocks, (expected, used, 0)):
        if (start, used_start) != (at, used_at):
            yield Run(at, start, used_at, used_start)
        at, used_at = start + length, used_start + length


def _matched(a: tuple[int, ...], b: tuple[int, ...], i: int, j: int, grams: Ids) -> Iterator[Block]:
    """Yield equal blocks of ``a`` and ``b``, which begin at ``i`` and ``j`` of the whole lists."""
    head = shared_head(a, b)
    tail = shared_head(a[head:][::-1], b[head:][::-1])
    if head:
        yield i, j, head
    inner, other = a[head : len(a) - tail], b[head : len(b) - tail]
    if inner and other:
        yield from _inside(inner, other, i + head, j + head, grams)
    if tail:
        yield i + len(a) - tail, j + len(b) - tail, tail


def _inside(a: tuple[int, ...], b: tuple[int, ...], i: int, j: int, grams: Ids) -> Iterator[Block]:
    blocks = _shortest(a, b)
    if blocks is not None:
        yield from ((i + x, j + y, length) for x, y, length in blocks)
        return
    for level, size in enumerate(grams):
        anchors = _anchors(a, b, size)
        if anchors:
            yield from _around(a, b, i, j, anchors, grams[level + 1 :])
            return


def _around(
    a: tuple[int, ...], b: tuple[int, ...], i: int, j: int, anchors: Sequence[tuple[int, int]], grams: Ids
) -> Iterator[Block]:
    at = used_at = 0
    for x, y in (*anchors, (len(a), len(b))):
        if x > at or y > used_at:
            yield from _matched(a[at:x], b[used_at:y], i + at, j + used_at, grams)
        if x < len(a):
            yield i + x, j + y, 1
        at, used_at = x + 1, y + 1


def _anchors(a: Ids, b: Ids, size: int) -> list[tuple[int, int]]:
    """Return places of sequences that occur once in each list, increasing in both."""
    mine, theirs = _once(a, size), _once(b, size)
    pairs = [(x, theirs[gram]) for gram, x in mine.items() if gram in theirs]
    return _increasing(pairs)


def _once(ids: Ids, size: int) -> dict[tuple[int, ...], int]:
    grams = list(zip(*(ids[offset:] for offset in range(size)), strict=False))
    counts = Counter(grams)
    return {gram: at for at, gram in enumerate(grams) if counts[gram] == 1}


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of ``pairs``, sorted by their first, whose second increases."""
    lowest: list[int] = []  # the least last value of a sequence of each length
    ends: list[int] = []
    before: list[int] = []
    for index, (_, y) in enumerate(pairs):
        length = bisect_left(lowest, y)
        before.append(ends[length - 1] if length else -1)
        if length == len(lowest):
            lowest.append(y)
            ends.append(index)
        else:
            lowest[length], ends[length] = y, index
    chain: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _shortest(a: Ids, b: Ids) -> list[Block] | None:
    """Return the equal blocks of a shortest edit script, ``None`` where it takes too many steps."""
    left = STEPS_A_TOKEN * (len(a) + len(b)) + FEWEST_STEPS
    reached = {1: 0}  # by diagonal x - y, the furthest x
    trace: list[dict[int, int]] = []
    for edits in range(len(a) + len(b) + 1):
        row: dict[int, int] = {}
        for diagonal in range(-edits, edits + 1, 2):
            x = start = _step(reached, diagonal, edits)
            while x < len(a) and 0 <= x - diagonal < len(b) and a[x] == b[x - diagonal]:
                x += 1
            row[diagonal] = x
            left -= 1 + x - start
            if x >= len(a) and x - diagonal >= len(b):
                return _walked_back(trace, edits, diagonal, x)
            if left < 0:
                return None
        trace.append(row)
        reached = row
    return None


def _step(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """Return the x from which a diagonal goes on: below its left neighbour or right of it."""
    if edits == 0:
        return 0
    down = reached.get(diagonal + 1, -1)
    right = reached.get(diagonal - 1, -2) + 1
    return max(down, right)


def _walked_back(trace: list[dict[int, int]], edits: int, diagonal: int, x: int) -> list[Block]:
    blocks: list[Block] = []
    for edit in range(edits, -1, -1):
        reached = trace[edit - 1] if edit else {}
        start = _step(reached, diagonal, edit)
        if x > start:
            blocks.append((start, start - diagonal, x - start))
        if edit:
            down = reached.get(diagonal + 1, -1) >= start
            x, diagonal = (start, diagonal + 1) if down else (start - 1, diagonal - 1)
    return blocks[::-1]
