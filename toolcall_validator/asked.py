"""What a request asked for, the same for all shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared tool; ``parameters`` is ``None`` when the caller gave none."""

    name: str
    parameters: Any


@dataclass(frozen=True)
class Asked:
    """A request as the rules see it.

    ``choice`` is ``auto``, ``none``, ``required`` or ``named``; ``allowed`` are
    the names that a call may have under it, ``None`` for all. ``structure`` is the schema
    that the answer's text must meet, ``True`` for any JSON object, ``None`` for
    prose. ``cap`` is in tokens.
    """

    model: str
    tools: Mapping[str, Tool]
    choice: str
    allowed: frozenset[str] | None
    cap: int | None
    structure: Any
    wants_usage: bool
    body: Mapping[str, Any] = field(repr=False)

    @cached_property
    def haystack(self) -> str:
        """All text of prompt, tools and format, in one string."""
        names = ("messages", "prompt", "input", "instructions", "system", "tools", "response_format", "text")
        return "\n".join(piece for name in names for piece in strings_of(self.body.get(name)))

    @cached_property
    def past_ids(self) -> frozenset[str]:
        """The ids of the calls that the conversation already holds."""
        messages = self.body.get("messages")
        return frozenset(
            call["id"]
            for message in (messages if isinstance(messages, list) else ())
            if isinstance(message, dict)
            for call in _list(message.get("tool_calls"))
            if isinstance(call, dict) and isinstance(call.get("id"), str)
        )

    @property
    def has_pictures(self) -> bool:
        """Whether the prompt holds parts that are no text: what they show is not known here."""
        messages = self.body.get("messages", self.body.get("input"))
        return any(
            isinstance(part, dict)
            and part.get("type") not in (None, "text", "input_text", "tool_result", "tool_use")
            for message in _list(messages)
            if isinstance(message, dict)
            for part in _list(message.get("content"))
        )


def read_request(body: Mapping[str, Any]) -> Asked:
    """Read a request body of any of the three shapes; what cannot be read counts as not asked."""
    tools = {tool.name: tool for tool in map(_tool, _list(body.get("tools"))) if tool is not None}
    choice, allowed = _choice(body.get("tool_choice"))
    caps = (body.get(name) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens"))
    options = body.get("stream_options")
    model = body.get("model")
    return Asked(
        model=model if isinstance(model, str) else "",
        tools=tools,
        choice=choice,
        allowed=allowed,
        cap=next((cap for cap in caps if type(cap) is int), None),
        structure=_structure(body),
        wants_usage=isinstance(options, dict) and bool(options.get("include_usage")),
        body=body,
    )


def _tool(entry: object) -> Tool | None:
    if not isinstance(entry, dict):
        return None
    inner = entry.get("function", entry)
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        return None
    return Tool(inner["name"], inner.get("parameters", inner.get("input_schema")))


def _choice(given: object) -> tuple[str, frozenset[str] | None]:
    if isinstance(given, dict):
        kind = given.get("type")
        if kind == "allowed_tools":
            allowed = given.get("allowed_tools", given)
            named = (
                [_tool(entry) for entry in _list(allowed.get("tools"))] if isinstance(allowed, dict) else []
            )
            mode = allowed.get("mode") if isinstance(allowed, dict) else None
            names = frozenset(tool.name for tool in named if tool is not None)
            return ("required" if mode == "required" else "auto"), names or None
        tool = _tool(given)
        if tool is not None:
            return "named", frozenset({tool.name})
        given = kind
    if given == "any":
        return "required", None
    return (given if given in ("none", "required") else "auto"), None


def _structure(body: Mapping[str, Any]) -> Any:
    text = body.get("text")
    wanted = body.get("response_format", text.get("format") if isinstance(text, dict) else None)
    if not isinstance(wanted, dict):
        return None
    if wanted.get("type") == "json_object":
        return True
    if wanted.get("type") != "json_schema":
        return None
    inner = wanted.get("json_schema", wanted)
    schema = inner.get("schema") if isinstance(inner, dict) else None
    return True if schema is None else schema


def strings_of(value: object) -> Iterator[str]:
    """Yield all strings of a value, keys included, without recursion."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend(item.values())
            stack.extend(item.keys())
        elif isinstance(item, list | tuple):
            stack.extend(item)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
