"""Text that repeats itself at its end: of a whole text, and of one that still grows.

A loop is a tail with a period of 1 to 50 units, characters or words, at least 4
times and over at least 32 of them. White space behind it is not looked at,
unless there is nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

LONGEST_PERIOD = 50  # units, characters or words
FEWEST_COPIES = 4
SHORTEST_LOOP = 32  # units


def loop_start(text: str) -> int | None:
    """Return the character at which the loop that a text ends in begins, or ``None``."""
    tail = text.rstrip() or text
    length = repeating(tail)
    if length is not None:
        return len(tail) - length
    length = repeating(tail.split())
    if length is None:
        return None
    before, *inside = tail.rsplit(maxsplit=length)
    rest = tail[len(before) :] if len(inside) == length else tail
    return len(tail) - len(rest.lstrip())


def repeating(units: Sequence[str]) -> int | None:
    """Return the length of the tail that repeats with the shortest period, or ``None``."""
    count = len(units)
    for period in range(1, min(LONGEST_PERIOD, count // FEWEST_COPIES) + 1):
        if units[-1] != units[-1 - period]:
            continue
        needed = _needed(period)
        if needed > count or units[count - needed + period :] != units[count - needed : count - period]:
            continue
        length = needed
        while length < count and units[count - length - 1] == units[count - length - 1 + period]:
            length += 1
        return length
    return None


class LoopWatch:
    """Sees a loop in a growing text at the first character that makes it one.

    Invariant: after any pieces, ``start`` is `loop_start` of what they joined
    to, and ``seen_at`` the least number of characters of it whose `loop_start`
    is not ``None``, however they were cut. The time is linear in the text.
    """

    def __init__(self) -> None:
        self.seen_at: int | None = None
        self._fed = 0
        self._characters = _Runs()
        self._words = _Runs()
        self._word: list[str] = []  # the last one, which may still grow
        self._spaces: list[str] = []  # behind the last word
        self._spoken = False

    def feed(self, piece: str) -> bool:
        """Take the next piece of the text, and tell whether the text ends in a loop now."""
        for character in piece:
            if character.isspace():
                self._space(character)
            else:
                self._letter(character)
            self._fed += 1
            if self.seen_at is None and self.start is not None:
                self.seen_at = self._fed
        return self.start is not None

    @property
    def start(self) -> int | None:
        """The character at which the loop begins that the text ends in now, or ``None``."""
        if self._characters.start is not None:
            return self._characters.start
        return self._words.start_with(self._word) if self._word else self._words.start

    def _space(self, character: str) -> None:
        if self._word:
            self._words.push("".join(self._word), self._fed - len(self._word))
            self._word.clear()
        if self._spoken:
            self._spaces.append(character)
        else:
            self._characters.push(character, self._fed)

    def _letter(self, character: str) -> None:
        self._spoken = True
        for count, space in enumerate(self._spaces, self._fed - len(self._spaces)):
            self._characters.push(space, count)
        self._spaces.clear()
        self._characters.push(character, self._fed)
        self._word.append(character)


class _Runs:
    """For each period, how many of the last units each equal the one a period before."""

    def __init__(self) -> None:
        self.start: int | None = None
        self._units: deque[str] = deque(maxlen=LONGEST_PERIOD)  # the last one first
        self._places: deque[int] = deque(maxlen=LONGEST_PERIOD)
        self._runs: dict[int, tuple[int, int]] = {}  # by period, ascending: length, place of its first copy
        self._nearly: list[tuple[int, int]] = []  # period and place of what one more equal unit makes a loop

    def push(self, unit: str, place: int) -> None:
        """Take the next unit, which begins at the character ``place``."""
        runs = self._runs
        equal = [period for period, earlier in enumerate(self._units, 1) if earlier == unit]
        self._runs = {
            period: (runs[period][0] + 1, runs[period][1])
            if period in runs
            else (1, self._places[period - 1])
            for period in equal
        }
        left = [(_needed(period) - period - run, period, at) for period, (run, at) in self._runs.items()]
        self.start = next((at for missing, _, at in left if missing <= 0), None)
        self._nearly = [(period, at) for missing, period, at in left if missing <= 1]
        self._units.appendleft(unit)
        self._places.appendleft(place)

    def start_with(self, letters: Sequence[str]) -> int | None:
        """Return what ``start`` would be after one more unit, which is not kept."""
        for period, at in self._nearly:
            earlier = self._units[period - 1]
            if len(earlier) == len(letters) and earlier == "".join(letters):
                return at
        return None


def _needed(period: int) -> int:
    return max(FEWEST_COPIES * period, SHORTEST_LOOP)
