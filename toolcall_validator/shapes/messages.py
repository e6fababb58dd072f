"""The Messages shape: content blocks, plain and streamed (Anthropic API, "Messages")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcall_validator.case import json_of
from toolcall_validator.events import CallPart, Finish, Reading
from toolcall_validator.shapes.by_block import BlockAssembly
from toolcall_validator.shapes.chat import dumped, string_of

_REASONS = {
    "tool_use": "tool_calls",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
}


def read_messages(bodies: Sequence[object], *, streamed: bool) -> Reading:
    """Return the events of a message, or of the events of its stream."""
    return _Assembly().read(bodies, streamed=streamed)


class _Assembly(BlockAssembly):
    def __init__(self) -> None:
        super().__init__()
        self._open: dict[object, CallPart] = {}
        self._filled: set[object] = set()

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
            self._count(json_of(event.get("message")).get("usage"))
        elif kind == "content_block_start":
            self._block(json_of(event.get("content_block")), at, place)
        elif kind == "content_block_delta":
            self._delta(json_of(event.get("delta")), at, place)
        elif kind == "content_block_stop" and place in self._open and place not in self._filled:
            # A block's input is {} until its deltas say otherwise: none is no fault in this shape.
            self._filled.add(place)
            self._events.append(CallPart(at, place, arguments="{}"))
        elif kind == "message_delta":
            self._count(event.get("usage"))
            self._finish(json_of(event.get("delta")).get("stop_reason"), at)

    def _block(self, block: Mapping[str, Any], at: int | None, place: int | None) -> None:
        kind = block.get("type")
        if kind == "tool_use":
            given = block.get("input")
            text = "" if at is not None and not given else dumped(given)
            part = CallPart(at, place, string_of(block.get("id")), string_of(block.get("name")), text)
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
            text = string_of(delta.get("partial_json"))
            if text:
                self._filled.add(place)
                self._events.append(CallPart(at, place, arguments=text))
        elif kind == "text_delta":
            self._words("content", delta.get("text"), at)
        elif kind == "thinking_delta":
            self._words("reasoning", delta.get("thinking"), at)

    def _finish(self, reason: object, at: int | None) -> None:
        if isinstance(reason, str) and reason:
            self._events.append(Finish(at, _REASONS.get(reason, reason)))
