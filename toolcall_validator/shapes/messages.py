"""The Messages shape: content blocks, plain and streamed (Anthropic API, "Messages")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcall_validator.events import CallPart, Event, Finish, Reading, Words
from toolcall_validator.shapes.chat import dumped

_REASONS = {
    "tool_use": "tool_calls",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
}


def read_messages(bodies: Sequence[object], *, streamed: bool) -> Reading:
    """Return the events of a message, or of the events of its stream."""
    assembly = _Assembly()
    for at, body in enumerate(bodies):
        if isinstance(body, Mapping):
            if streamed:
                assembly.add(body, at)
            else:
                assembly.add_whole(body)
    return assembly.reading()


class _Assembly:
    def __init__(self) -> None:
        self._events: list[Event] = []
        self._open: dict[object, CallPart] = {}
        self._filled: set[object] = set()
        self._tokens: int | None = None
        self._usage = False
        self._error = False

    def reading(self) -> Reading:
        return Reading(
            (tuple(self._events),),
            self._tokens,
            self._usage,
            failed=self._error and not self._events,
            by_block=True,
        )

    def add_whole(self, body: Mapping[str, Any]) -> None:
        self._error = body.get("type") == "error"
        self._count(body.get("usage"))
        blocks = body.get("content")
        for place, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if isinstance(block, Mapping):
                self._block(block, None, place)
        self._finish(body.get("stop_reason"), None)

    def add(self, event: Mapping[str, Any], at: int) -> None:
        kind, index = event.get("type"), event.get("index")
        place = index if type(index) is int else None
        if kind == "error":
            self._error = True
        elif kind == "message_start":
            self._count(_mapping(event.get("message")).get("usage"))
        elif kind == "content_block_start":
            self._block(_mapping(event.get("content_block")), at, place)
        elif kind == "content_block_delta":
            self._delta(_mapping(event.get("delta")), at, place)
        elif kind == "content_block_stop" and place in self._open and place not in self._filled:
            # A block's input is {} until its deltas say otherwise: none is no fault in this shape.
            self._filled.add(place)
            self._events.append(CallPart(at, place, arguments="{}"))
        elif kind == "message_delta":
            self._count(event.get("usage"))
            self._finish(_mapping(event.get("delta")).get("stop_reason"), at)

    def _block(self, block: Mapping[str, Any], at: int | None, place: int | None) -> None:
        kind = block.get("type")
        if kind == "tool_use":
            given = block.get("input")
            text = "" if at is not None and not given else dumped(given)
            part = CallPart(at, place, _string(block.get("id")), _string(block.get("name")), text)
            self._events.append(part)
            self._open[place] = part
            if text:
                self._filled.add(place)
        elif kind == "text":
            self._words("content", block.get("text"), at)
        elif kind == "thinking":
            self._words("reasoning", block.get("thinking"), at)

    def _delta(self, delta: Mapping[str, Any], at: int, place: int | None) -> None:
        kind = delta.get("type")
        if kind == "input_json_delta":
            text = _string(delta.get("partial_json"))
            if text:
                self._filled.add(place)
                self._events.append(CallPart(at, place, arguments=text))
        elif kind == "text_delta":
            self._words("content", delta.get("text"), at)
        elif kind == "thinking_delta":
            self._words("reasoning", delta.get("thinking"), at)

    def _words(self, field: str, text: object, at: int | None) -> None:
        if isinstance(text, str) and text:
            self._events.append(Words(at, field, text))

    def _finish(self, reason: object, at: int | None) -> None:
        if isinstance(reason, str) and reason:
            self._events.append(Finish(at, _REASONS.get(reason, reason)))

    def _count(self, usage: object) -> None:
        if isinstance(usage, Mapping):
            self._usage = True
            count = usage.get("output_tokens")
            self._tokens = count if type(count) is int else self._tokens


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
