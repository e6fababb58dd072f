"""What can be told of an answer without its tokenizer."""

from __future__ import annotations

LOOP_NEEDS = 40  # characters at the end that must repeat
_LOOKED_AT = 400  # characters at the end
_REPEATS = 4


def loops(text: str) -> bool:
    """Return whether a text ends by saying the same thing over and over.

    Its last half, at least `LOOP_NEEDS` and at most 400 characters, consists
    of one piece, repeated at least four times.
    """
    text = text.strip()
    size = min(_LOOKED_AT, max(LOOP_NEEDS, len(text) // 2))
    tail = text[-size:]
    return len(tail) >= LOOP_NEEDS and _period(tail) * _REPEATS <= len(tail)


def _period(text: str) -> int:
    """Return the least p for which each character equals the one p before it."""
    borders = [0] * len(text)
    for end in range(1, len(text)):
        border = borders[end - 1]
        while border and text[end] != text[border]:
            border = borders[border - 1]
        borders[end] = border + (text[end] == text[border])
    return len(text) - borders[-1]
