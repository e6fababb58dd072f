"""Protocol markers in text: where they stand, and when they are only spoken about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

ENVELOPES: tuple[tuple[str, str], ...] = (
    ("<tool_call>", "</tool_call>"),
    ("<function=", "</function>"),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<|tool_call_begin|>", "<|tool_call_end|>"),
    ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),  # noqa: RUF001 - the model's own signs
    ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),  # noqa: RUF001
    ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),  # noqa: RUF001
    ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),  # noqa: RUF001
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<invoke name=", "</invoke>"),
)
"""What opens a call and what closes it, where the closing marker is part of the text."""

_ANY_SPECIAL = (
    r"<\|[\w\"]{1,40}\|>|<\|(?:tool_call|tool_response|channel)>|<(?:tool_call|tool_response|channel)\|>"
)
"""Special tokens of families that have no table yet."""

_AROUND = 200  # characters of the sentence around a marker
_OPENERS = ("call", "function", "invoke", "channel", "python")

_THINKING = re.compile(r"</?(think|seed:think|mm:think)>|\[/?THINK\]")
_QUOTES = "`'\"“”\u2018\u2019«»"
_SPECIAL = ("<|", "<｜", "</｜", "[TOOL_CALLS]")  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Mark:
    """One marker in a text: characters ``start`` to ``end``."""

    marker: str
    start: int
    end: int

    @property
    def opens(self) -> bool:
        """Whether a call begins here."""
        closes = self.marker.startswith("</") or "end" in self.marker
        return not closes and any(word in self.marker.lower() for word in _OPENERS)


class Markers:
    """Finds the markers of all families in one pass over a text."""

    def __init__(self, leaks: Mapping[str, tuple[str, ...]]) -> None:
        found = {marker for markers in leaks.values() for marker in markers} | {
            marker for pair in ENVELOPES for marker in pair
        }
        # Reasoning tags have rules of their own; a marker that is a prose word would cry wolf.
        kept = sorted((m for m in found if not _THINKING.fullmatch(m)), key=len, reverse=True)
        self._pattern = re.compile("|".join([*map(re.escape, kept), _ANY_SPECIAL]))

    def find(self, text: str) -> Iterator[Mark]:
        """Yield the markers of a text from left to right, the longest where several begin."""
        for match in self._pattern.finditer(text):
            yield Mark(match.group(), match.start(), match.end())

    def thinking(self, text: str) -> Iterator[Mark]:
        """Yield the tags around reasoning: what is left of them beside separated reasoning leaked."""
        for match in _THINKING.finditer(text):
            yield Mark(match.group(), match.start(), match.end())

    def strip(self, text: str) -> str:
        """Return the text without its markers."""
        return self._pattern.sub("", text)

    def before(self, text: str) -> str:
        """Return the text up to its first marker."""
        return self._pattern.split(text, maxsplit=1)[0]


def spoken_of(text: str, mark: Mark, *, delivered: bool) -> bool:
    """Tell whether prose mentions the marker, rather than a model using it.

    Quoted markers are mentioned. Unquoted ones are when a sentence goes on
    with them on both sides; for special tokens, which no tokenizer makes of
    prose, only in small letters or punctuation and only without a call.
    """
    before = text[max(0, mark.start - _AROUND) : mark.start]
    after = text[mark.end : mark.end + _AROUND]
    if before[-1:] and before[-1] in _QUOTES and after.lstrip(">")[:1] and after.lstrip(">")[0] in _QUOTES:
        return True
    if text.count("```", 0, mark.start) % 2 == 1 and text.find("```", mark.end) >= 0:
        return True
    if not re.search(r"\w[ ,:(]+$", before):
        return False
    if mark.marker.startswith(_SPECIAL):
        return not delivered and re.match(r"( [a-z]+ [a-z]|[,.)] ?[A-Za-z]*|\.$)", after) is not None
    return re.match(r"([ ,]+(?!functions?\b)[A-Za-z]+[ ,.]|[.,;:)]( |$))", after) is not None


def unclosed(text: str) -> tuple[int, int] | None:
    """Return the span from the first envelope that opens and never closes, or ``None``."""
    starts = [
        at
        for opening, closing in ENVELOPES
        if (at := text.rfind(opening)) >= 0 and text.find(closing, at) < 0
    ]
    return (min(starts), len(text)) if starts else None
