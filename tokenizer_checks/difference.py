"""Where two lists of token IDs differ, with the text around the first place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizer_checks.alignment import Run, align
from tokenizer_checks.comparison import WINDOW
from tokenizer_checks.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Window:
    """IDs around a place of one list, from index ``start`` on, and their text."""

    start: int
    ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """How the IDs a server used depart from the expected ones.

    ``first`` is the index of the first difference, in both lists. The two
    windows hold at most 64 IDs together. ``runs`` are in order, and at least
    one; replacing each of them in ``expected`` gives ``used``.
    """

    expected: tuple[int, ...]
    used: tuple[int, ...]
    first: int
    runs: tuple[Run, ...]
    expected_window: Window
    used_window: Window

    @property
    def missing(self) -> int:
        """How many expected tokens are not where they should be."""
        return sum(run.missing for run in self.runs)

    @property
    def added(self) -> int:
        """How many tokens were used that were not expected there."""
        return sum(run.added for run in self.runs)


def difference(expected: Sequence[int], used: Sequence[int], vocabulary: Vocabulary) -> Difference | None:
    """Return how ``used`` departs from ``expected``, ``None`` where they are equal.

    Takes near-linear time (benchmarks/token_diff.py). IDs may be any integers.
    """
    mine, theirs = tuple(expected), tuple(used)
    if mine == theirs:
        return None
    runs = align(mine, theirs)
    first = runs[0].start
    return Difference(
        mine, theirs, first, runs, _window(mine, first, vocabulary), _window(theirs, first, vocabulary)
    )


def _window(ids: tuple[int, ...], centre: int, vocabulary: Vocabulary) -> Window:
    start, stop = max(0, centre - WINDOW), centre + WINDOW
    return Window(start, ids[start:stop], vocabulary.text_of(ids, start, min(stop, len(ids))))
