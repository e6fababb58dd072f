"""The Responses shape: output items, plain and streamed (OpenAI API, "Responses")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcall_validator.case import json_of
from toolcall_validator.events import CallPart, Finish, Reading, Refusal
from toolcall_validator.shapes.by_block import BlockAssembly
from toolcall_validator.shapes.chat import dumped, string_of

_ENDS = ("response.completed", "response.incomplete", "response.failed")
_THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


def read_responses(bodies: Sequence[object], *, streamed: bool) -> Reading:
    """Return the events of a response, or of the events of its stream."""
    return _Assembly().read(bodies, streamed=streamed)


class _Assembly(BlockAssembly):
    def __init__(self) -> None:
        super().__init__()
        self._opened: set[object] = set()  # output indices of calls that began
        self._spoken: set[object] = set()  # those whose arguments came in deltas
        self._called = False

    def add_whole(self, body: Mapping[str, Any]) -> None:
        self._error = bool(body.get("error"))
        items = body.get("output")
        for place, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, Mapping):
                self._item(item, None, place)
        self._end(body, None)

    def add(self, event: Mapping[str, Any], at: int) -> None:
        kind = string_of(event.get("type"))
        index = event.get("output_index")
        place = index if type(index) is int else None
        if kind == "error":
            self._error = True
        elif kind in _ENDS:
            self._end(json_of(event.get("response")), at)
        elif kind == "response.output_text.delta":
            self._words("content", event.get("delta"), at)
        elif kind in _THOUGHTS:
            self._words("reasoning", event.get("delta"), at)
        elif kind == "response.refusal.delta":
            self._events.append(Refusal(at))
        elif kind == "response.function_call_arguments.delta":
            self._spoken.add(place)
            self._events.append(CallPart(at, place, arguments=string_of(event.get("delta"))))
        elif kind == "response.function_call_arguments.done" and place not in self._spoken:
            self._spoken.add(place)
            self._events.append(CallPart(at, place, arguments=string_of(event.get("arguments"))))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._streamed_item(json_of(event.get("item")), at, place)

    def _streamed_item(self, item: Mapping[str, Any], at: int, place: int | None) -> None:
        if item.get("type") != "function_call":
            return
        if place not in self._opened:
            self._item(item, at, place)
            if item.get("arguments"):
                self._spoken.add(place)
        elif place not in self._spoken:
            self._spoken.add(place)
            self._events.append(CallPart(at, place, arguments=string_of(item.get("arguments"))))

    def _item(self, item: Mapping[str, Any], at: int | None, place: int | None) -> None:
        kind = item.get("type")
        if kind == "function_call":
            self._opened.add(place)
            self._called = True
            given = item.get("arguments")
            as_object = given is not None and not isinstance(given, str)
            self._events.append(
                CallPart(
                    at,
                    place,
                    string_of(item.get("call_id")),
                    string_of(item.get("name")),
                    dumped(given) if as_object else string_of(given),
                    as_object=as_object,
                )
            )
        elif kind in ("message", "reasoning"):
            for part in [*_list(item.get("content")), *_list(item.get("summary"))]:
                if json_of(part).get("type") == "refusal":
                    self._events.append(Refusal(at))
                field = "content" if kind == "message" else "reasoning"
                self._words(field, json_of(part).get("text"), at)

    def _end(self, response: Mapping[str, Any], at: int | None) -> None:
        self._count(response.get("usage"))
        status = response.get("status")
        if status == "completed":
            # The shape has no word for "I called": completed is right with and without a call.
            self._events.append(Finish(at, "tool_calls" if self._called else "stop"))
        elif status == "incomplete":
            reason = json_of(response.get("incomplete_details")).get("reason")
            self._events.append(Finish(at, "content_filter" if reason == "content_filter" else "length"))
        elif status == "failed":
            self._error = True


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
