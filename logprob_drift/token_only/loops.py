"""Answers that end by saying the same thing over and over, and those that are one sign for ever.

An endless loop is what a model falls into, small ones now and then. A flood
of one sign is what a server prints whose logits are no numbers: the choice
among NaN is always the same token, "!" in many vocabularies.
"""

from __future__ import annotations

from collections.abc import Sequence

LOOP_NEEDS = 40  # characters at the end that must repeat
FLOOD_NEEDS = 20  # tokens
_LOOKED_AT = 400  # characters or tokens at the end
_REPEATS = 4


def loops(text: str) -> bool:
    """Return whether a text ends by saying the same thing over and over.

    Its last half, at least `LOOP_NEEDS` and at most 400 characters, consists
    of one piece, repeated at least four times.
    """
    return _piece(text.strip(), LOOP_NEEDS) is not None


def floods(text: str, ids: Sequence[int] = ()) -> bool:
    """Return whether an answer ends in one character, or in one token, for ever.

    The end is the last half, at least `LOOP_NEEDS` characters of ``text`` or
    `FLOOD_NEEDS` of the token ``ids``, where these are known. White space
    around a text does not count: as a flood only its tokens show it.
    """
    return _piece(text.strip(), LOOP_NEEDS) == 1 or _piece(ids, FLOOD_NEEDS) == 1


def _piece(items: Sequence[object], least: int) -> int | None:
    """Return how long the piece is that the last half repeats, ``None`` where it repeats none."""
    size = min(_LOOKED_AT, max(least, len(items) // 2))
    tail = items[-size:]
    period = _period(tail)
    return period if len(tail) >= least and period * _REPEATS <= len(tail) else None


def _period(items: Sequence[object]) -> int:
    """Return the least p for which each item equals the one p before it."""
    borders = [0] * len(items)
    for end in range(1, len(items)):
        border = borders[end - 1]
        while border and items[end] != items[border]:
            border = borders[border - 1]
        borders[end] = border + (items[end] == items[border])
    return len(items) - borders[-1] if borders else 0
