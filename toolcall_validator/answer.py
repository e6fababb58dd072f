"""One answer, assembled from its events, strictly and tolerantly."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from toolcall_validator.calls import Call, strict_calls, tolerant_calls
from toolcall_validator.events import CallPart, Event, Finish, NullList, Refusal, Words
from toolcall_validator.text import Text, joined


@dataclass(frozen=True, slots=True)
class Answer:
    """What one choice said.

    ``calls`` are those that common clients make of it, ``strict`` those of the
    letter of the contract; for a plain answer the two are equal. ``parts`` are
    the deltas as sent. ``finishes`` holds every finish reason that was sent.
    """

    streamed: bool
    content: Text
    reasoning: Text
    calls: tuple[Call, ...]
    parts: tuple[CallPart, ...]
    finishes: tuple[Finish, ...]
    null_lists: tuple[NullList, ...]
    refused: bool

    @property
    def strict(self) -> tuple[Call, ...]:
        """The calls by the letter of the contract."""
        return strict_calls(self.parts)

    @property
    def finish_reason(self) -> str | None:
        """The first finish reason, in the words of chat completions."""
        return self.finishes[0].reason if self.finishes else None

    @property
    def cut(self) -> bool:
        """Whether the server says that the answer ended at a limit."""
        return self.finish_reason in ("length", "content_filter")


def assemble(events: Sequence[Event], declared: Set[str], *, streamed: bool) -> Answer:
    """Return the answer of one choice; ``declared`` are the names of the request's tools."""
    kinds: dict[type, list[Any]] = {kind: [] for kind in (CallPart, Words, Finish, NullList, Refusal)}
    for event in events:
        kinds[type(event)].append(event)
    parts = tuple(kinds[CallPart])
    words = [(word.field, word.chunk, word.text) for word in kinds[Words]]
    return Answer(
        streamed=streamed,
        content=joined("content", [(chunk, text) for field, chunk, text in words if field == "content"]),
        reasoning=joined(
            "reasoning", [(chunk, text) for field, chunk, text in words if field == "reasoning"]
        ),
        calls=tolerant_calls(parts, declared) if streamed else strict_calls(parts),
        parts=parts,
        finishes=tuple(kinds[Finish]),
        null_lists=tuple(kinds[NullList]),
        refused=bool(kinds[Refusal]),
    )
