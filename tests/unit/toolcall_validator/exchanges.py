"""Builders of recorded exchanges, and what each must be found to be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

WEATHER = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "units": {"enum": ["metric", "imperial"]},
        "zip": {"type": "string", "pattern": "^[0-9]{5}$"},
        "box": {"type": "object", "properties": {"x": {"type": "number"}}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "exact": {"type": "boolean"},
    },
    "required": ["place"],
    "additionalProperties": False,
}
OK = '{"place": "Oslo"}'
USAGE = {"prompt_tokens": 31, "completion_tokens": 12, "total_tokens": 43}


@dataclass(frozen=True)
class Sample:
    """A record and exactly the codes that it must get, in order, each once."""

    id: str
    record: dict[str, Any]
    codes: tuple[str, ...] = ()

    @property
    def streamed(self) -> bool:
        return "chunks" in self.record


def tool(name: str = "weather", parameters: Any = WEATHER) -> dict[str, Any]:
    function = {"name": name} if parameters is None else {"name": name, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [tool(), tool("ping", {"type": "object", "properties": {}})]


def request(**fields: Any) -> dict[str, Any]:
    asked = {"role": "user", "content": "Will it rain in Oslo, and in Bergen?"}
    return {"model": "a-model", "messages": [asked], "tools": TOOLS} | fields


def call(arguments: Any = OK, name: Any = "weather", identity: Any = "call_a", **more: Any) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}} | more


def plain(
    *calls: dict[str, Any],
    content: str | None = None,
    finish: str | None = None,
    usage: dict[str, int] | None = USAGE,
    asked: dict[str, Any] | None = None,
    **message: Any,
) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, "tool_calls": list(calls) or None} | message
    choice = {
        "index": 0,
        "message": said,
        "finish_reason": finish or ("tool_calls" if calls else "stop"),
    }
    return {
        "id": "p",
        "request": request(**(asked or {})),
        "response": {"object": "chat.completion", "choices": [choice], "usage": usage},
    }


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def opening(
    arguments: str | None = "", name: Any = "weather", identity: Any = "call_a", index: int | None = 0
) -> dict[str, Any]:
    function = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    entry = {"id": identity, "type": "function", "function": function}
    return delta(tool_calls=[entry if index is None else entry | {"index": index}])


def more(arguments: str, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | fields.pop("function", {})
    entry = {"function": function} | fields
    return delta(tool_calls=[entry if index is None else entry | {"index": index}])


def stream(
    *chunks: dict[str, Any],
    finish: str | None = "tool_calls",
    usage: dict[str, int] | None = USAGE,
    asked: dict[str, Any] | None = None,
) -> dict[str, Any]:
    last = [delta(finish)] if finish else []
    counted = [{"choices": [], "usage": usage}] if usage else []
    return {
        "id": "s",
        "request": request(**{"stream": True, "stream_options": {"include_usage": True}} | (asked or {})),
        "chunks": [delta(role="assistant"), *chunks, *last, *counted],
        "done": True,
    }


def in_pieces(text: str, size: int = 7) -> list[dict[str, Any]]:
    return [more(text[at : at + size]) for at in range(0, len(text), size)]


def dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
