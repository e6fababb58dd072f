"""Chat completions, plain and streamed, as the OpenAI API spells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from toolcall_validator.events import CallPart, Event, Finish, NullList, Reading, Refusal, Words

_REASONING = ("reasoning_content", "reasoning")


def read_chat(bodies: Sequence[object], *, streamed: bool) -> Reading:
    """Return the events of a body, or of the chunks of a stream; what has another shape is left out."""
    choices: dict[int, list[Event]] = {}
    tokens: int | None = None
    usage = error = False
    for at, body in enumerate(bodies):
        if not isinstance(body, dict):
            continue
        error = error or bool(body.get("error"))
        stated = body.get("usage")
        if isinstance(stated, dict):
            usage = True
            count = stated.get("completion_tokens")
            tokens = count if type(count) is int else tokens
        listed = body.get("choices")
        for place, choice in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(choice, dict):
                index = choice.get("index")
                key = index if type(index) is int else place
                _choice(choice, at if streamed else None, streamed, choices.setdefault(key, []))
    found = tuple(tuple(choices[key]) for key in sorted(choices))
    return Reading(found or ((),), tokens, usage, failed=error and not found)


def _choice(choice: Mapping[str, Any], chunk: int | None, streamed: bool, to: list[Event]) -> None:
    """Append the events of one choice; lists, since generators in generators are half of the time."""
    message = choice.get("delta" if streamed else "message")
    if isinstance(message, dict):
        calls = message.get("tool_calls")
        if len(message) > 1 or not isinstance(calls, list):  # most deltas of a call hold nothing else
            to.extend(_message(message, chunk))
            if streamed and calls is None and "tool_calls" in message:
                to.append(NullList(chunk))
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                to.append(call_part(call, chunk, None if streamed else place))
    text = choice.get("text")
    if isinstance(text, str):
        to.append(Words(chunk, "content", text))
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason:
        to.append(Finish(chunk, "tool_calls" if reason == "function_call" else reason))


def _message(message: Mapping[str, Any], chunk: int | None) -> Iterator[Event]:
    """Yield what a message or delta says beside its calls."""
    for key in _REASONING:
        thought = message.get(key)
        if isinstance(thought, str) and thought:
            yield Words(chunk, "reasoning", thought)
            break  # some servers send the same text under both names
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if isinstance(content, str) and content:
        yield Words(chunk, "content", content)
    if message.get("refusal"):
        yield Refusal(chunk)


def call_part(call: Mapping[str, Any], chunk: int | None, place: int | None) -> CallPart:
    """Return one entry of ``tool_calls``; ``place`` is its index in a plain answer."""
    function = call.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, dict) else {}
    index = call.get("index") if place is None else place
    arguments = inner.get("arguments")
    if isinstance(arguments, str) and "id" not in call and "name" not in inner:
        return CallPart(chunk, index if type(index) is int else None, "", "", arguments)
    text = arguments if isinstance(arguments, str) else ""
    as_object = arguments is not None and not isinstance(arguments, str)
    if as_object:
        text = dumped(arguments)
    return CallPart(
        chunk,
        index if type(index) is int else None,
        string_of(call.get("id")),
        string_of(inner.get("name")),
        text,
        nulls=("id" in call and call["id"] is None) or ("name" in inner and inner["name"] is None),
        empties=call.get("id") == "" or inner.get("name") == "",
        as_object=as_object,
    )


def dumped(value: object) -> str:
    """Return a parsed value as JSON text again; what JSON cannot say is the empty text."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return ""


def string_of(value: object) -> str:
    """Return the value when it is text, else the empty text."""
    return value if isinstance(value, str) else ""
