"""The Responses shape: output items, plain and streamed (OpenAI API, "Responses")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcall_validator.events import CallPart, Event, Finish, Reading, Refusal, Words
from toolcall_validator.shapes.chat import dumped

_ENDS = ("response.completed", "response.incomplete", "response.failed")
_THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


def read_responses(bodies: Sequence[object], *, streamed: bool) -> Reading:
    """Return the events of a response, or of the events of its stream."""
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
        self._opened: set[object] = set()  # output indices of calls that began
        self._spoken: set[object] = set()  # those whose arguments came in deltas
        self._called = False
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
        self._error = bool(body.get("error"))
        items = body.get("output")
        for place, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, Mapping):
                self._item(item, None, place)
        self._end(body, None)

    def add(self, event: Mapping[str, Any], at: int) -> None:
        kind = _string(event.get("type"))
        index = event.get("output_index")
        place = index if type(index) is int else None
        if kind == "error":
            self._error = True
        elif kind in _ENDS:
            self._end(_mapping(event.get("response")), at)
        elif kind == "response.output_text.delta":
            self._words("content", event.get("delta"), at)
        elif kind in _THOUGHTS:
            self._words("reasoning", event.get("delta"), at)
        elif kind == "response.refusal.delta":
            self._events.append(Refusal(at))
        elif kind == "response.function_call_arguments.delta":
            self._spoken.add(place)
            self._events.append(CallPart(at, place, arguments=_string(event.get("delta"))))
        elif kind == "response.function_call_arguments.done" and place not in self._spoken:
            self._spoken.add(place)
            self._events.append(CallPart(at, place, arguments=_string(event.get("arguments"))))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._streamed_item(_mapping(event.get("item")), at, place)

    def _streamed_item(self, item: Mapping[str, Any], at: int, place: int | None) -> None:
        if item.get("type") != "function_call":
            return
        if place not in self._opened:
            self._item(item, at, place)
            if item.get("arguments"):
                self._spoken.add(place)
        elif place not in self._spoken:
            self._spoken.add(place)
            self._events.append(CallPart(at, place, arguments=_string(item.get("arguments"))))

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
                    _string(item.get("call_id")),
                    _string(item.get("name")),
                    dumped(given) if as_object else _string(given),
                    as_object=as_object,
                )
            )
        elif kind in ("message", "reasoning"):
            for part in [*_list(item.get("content")), *_list(item.get("summary"))]:
                if _mapping(part).get("type") == "refusal":
                    self._events.append(Refusal(at))
                field = "content" if kind == "message" else "reasoning"
                self._words(field, _mapping(part).get("text"), at)

    def _words(self, field: str, text: object, at: int | None) -> None:
        if isinstance(text, str) and text:
            self._events.append(Words(at, field, text))

    def _end(self, response: Mapping[str, Any], at: int | None) -> None:
        usage = response.get("usage")
        if isinstance(usage, Mapping):
            self._usage = True
            count = usage.get("output_tokens")
            self._tokens = count if type(count) is int else self._tokens
        status = response.get("status")
        if status == "completed":
            # The shape has no word for "I called": completed is right with and without a call.
            self._events.append(Finish(at, "tool_calls" if self._called else "stop"))
        elif status == "incomplete":
            reason = _mapping(response.get("incomplete_details")).get("reason")
            self._events.append(Finish(at, "content_filter" if reason == "content_filter" else "length"))
        elif status == "failed":
            self._error = True


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
