"""Text that came in pieces, and where each piece was."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from toolcall_validator.fault import Span


@dataclass(frozen=True, slots=True)
class Text:
    """One assembled field.

    ``starts[i]`` is the character at which the piece of ``chunks[i]`` begins.
    Invariant: ``value`` does not depend on how it was cut into pieces.
    """

    field: str
    value: str = ""
    starts: tuple[int, ...] = ()
    chunks: tuple[int | None, ...] = ()

    def span(self, start: int, end: int) -> Span:
        """Return the span of ``value[start:end]``."""
        at = max(bisect_right(self.starts, start) - 1, 0)
        first = len(self.value[:start].encode("utf-8", "surrogatepass"))
        length = len(self.value[start:end].encode("utf-8", "surrogatepass"))
        return Span(self.field, self.chunks[at] if self.chunks else None, first, first + length)

    @property
    def whole(self) -> Span:
        """The span of everything."""
        return self.span(0, len(self.value))


def joined(field: str, pieces: Iterable[tuple[int | None, str]]) -> Text:
    """Return the pieces, each with its chunk, as one text; empty pieces are no pieces."""
    starts: list[int] = []
    chunks: list[int | None] = []
    parts: list[str] = []
    length = 0
    for chunk, part in pieces:
        if part:
            starts.append(length)
            chunks.append(chunk)
            parts.append(part)
            length += len(part)
    return Text(field, "".join(parts), tuple(starts), tuple(chunks))
