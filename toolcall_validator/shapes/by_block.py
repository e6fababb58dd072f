"""What the two shapes share whose answers are lists of blocks: Messages and Responses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from toolcall_validator.events import Event, Reading, Words


class BlockAssembly(ABC):
    """Gathers the events of one answer from its body, or from the events of its stream."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._tokens: int | None = None
        self._usage = False
        self._error = False

    def read(self, bodies: Sequence[object], *, streamed: bool) -> Reading:
        """Return what all bodies say together; what is no object is left out."""
        for at, body in enumerate(bodies):
            if isinstance(body, Mapping):
                if streamed:
                    self.add(body, at)
                else:
                    self.add_whole(body)
        return Reading(
            (tuple(self._events),),
            self._tokens,
            self._usage,
            failed=self._error and not self._events,
            by_block=True,
        )

    @abstractmethod
    def add_whole(self, body: Mapping[str, Any]) -> None:
        """Take a plain answer."""

    @abstractmethod
    def add(self, event: Mapping[str, Any], at: int) -> None:
        """Take the event of a stream that came as the ``at``-th, counted from 0."""

    def _words(self, field: str, text: object, at: int | None) -> None:
        if isinstance(text, str) and text:
            self._events.append(Words(at, field, text))

    def _count(self, usage: object) -> None:
        if isinstance(usage, Mapping):
            self._usage = True
            count = usage.get("output_tokens")
            self._tokens = count if type(count) is int else self._tokens
