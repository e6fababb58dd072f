"""One prompt: the token IDs a server used against the expected ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tokenizer_checks.alignment import shared_head

WINDOW = 16  # IDs kept on each side of a difference, of each list: at most 64 in all


class Kind(StrEnum):
    """How much could be seen, and what it showed."""

    EQUAL = "equal"
    OTHER_DAY = "other_day"  # as the model's template gives them on the day before or after
    CUT = "cut"  # the expected IDs less one contiguous run
    DIFFERENT = "different"
    SAME_COUNT = "same_count"  # only a count was shown, and it fits
    OTHER_COUNT = "other_count"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is known of one prompt's IDs.

    ``first`` is the index of the first difference, ``cut`` start and length of
    the missing run. ``expected_window`` and ``used_window`` are the IDs around
    ``first``. ``shared`` is the share of the shorter list, in [0, 1], that the
    longer one contains in any order: it stays high under every template fault
    and every cut, and falls under another vocabulary.
    """

    kind: Kind
    expected: int
    used: int | None
    first: int | None = None
    cut: tuple[int, int] | None = None
    expected_window: tuple[int, ...] = ()
    used_window: tuple[int, ...] = ()
    shared: float | None = None

    @property
    def same(self) -> bool | None:
        """Whether the prompt is the model's own; ``None`` when nothing was shown."""
        if self.kind is Kind.UNSEEN:
            return None
        return self.kind in (Kind.EQUAL, Kind.OTHER_DAY, Kind.SAME_COUNT)

    @property
    def on_expected_ids(self) -> bool:
        """Whether logprobs may be compared on the expected IDs."""
        return self.kind in (Kind.EQUAL, Kind.SAME_COUNT)


def compare(
    expected: Sequence[int],
    used: Sequence[int] | None,
    count: int | None,
    *,
    nearby: Collection[tuple[int, ...]] = (),
) -> Comparison:
    """Compare by IDs when the server showed them (``used``), else by its ``count`` of prompt tokens.

    Equal counts are consistent with equal IDs and no proof of them. ``nearby``
    are the IDs that are right a day earlier and a day later.
    """
    if used is not None:
        by_ids = _by_ids(tuple(expected), tuple(used))
        own = by_ids.kind is not Kind.EQUAL and tuple(used) in nearby
        return replace(by_ids, kind=Kind.OTHER_DAY, cut=None) if own else by_ids
    if count is None:
        return Comparison(Kind.UNSEEN, len(expected), None)
    kind = Kind.SAME_COUNT if count == len(expected) else Kind.OTHER_COUNT
    if kind is Kind.OTHER_COUNT and any(count == len(ids) for ids in nearby):
        kind = Kind.OTHER_DAY
    return Comparison(kind, len(expected), count)


def _by_ids(expected: tuple[int, ...], used: tuple[int, ...]) -> Comparison:
    if expected == used:
        return Comparison(Kind.EQUAL, len(expected), len(used), shared=1.0)
    head = shared_head(expected, used)
    shorter = min(len(expected), len(used)) - head
    tail = min(shared_head(expected[::-1], used[::-1]), shorter)
    is_cut = len(used) < len(expected) and head + tail == len(used)
    return Comparison(
        kind=Kind.CUT if is_cut else Kind.DIFFERENT,
        expected=len(expected),
        used=len(used),
        first=head,
        cut=(head, len(expected) - len(used)) if is_cut else None,
        expected_window=_window(expected, head),
        used_window=_window(used, head),
        shared=(Counter(expected) & Counter(used)).total() / max(1, min(len(expected), len(used))),
    )


def _window(ids: tuple[int, ...], centre: int) -> tuple[int, ...]:
    return ids[max(0, centre - WINDOW) : centre + WINDOW]
