"""One answer, assembled from its events, strictly and tolerantly."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

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
    strict: tuple[Call, ...]
    parts: tuple[CallPart, ...]
    finishes: tuple[Finish, ...]
    null_lists: tuple[NullList, ...]
    refused: bool

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
    parts = tuple(event for event in events if isinstance(event, CallPart))
    words = [event for event in events if isinstance(event, Words)]
    strict = strict_calls(parts)
    return Answer(
        streamed=streamed,
        content=joined("content", ((word.chunk, word.text) for word in words if word.field == "content")),
        reasoning=joined(
            "reasoning", ((word.chunk, word.text) for word in words if word.field == "reasoning")
        ),
        calls=tolerant_calls(parts, declared) if streamed else strict,
        strict=strict,
        parts=parts,
        finishes=tuple(event for event in events if isinstance(event, Finish)),
        null_lists=tuple(event for event in events if isinstance(event, NullList)),
        refused=any(isinstance(event, Refusal) for event in events),
    )
