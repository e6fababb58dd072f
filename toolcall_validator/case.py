"""One answer beside its request: what every rule looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from toolcall_validator.answer import Answer
from toolcall_validator.asked import Asked, Tool
from toolcall_validator.calls import Call
from toolcall_validator.markers import Markers
from toolcall_validator.schemas import Schema, Schemas
from toolcall_validator.strict_json import Parsed, parse_strict


@dataclass(frozen=True)
class Judged:
    """A call with what could be made of it.

    ``name`` and ``text`` are repaired of leaked markers: to diagnose what lies
    behind, never to pass. ``schema`` is ``None`` for a tool that was not
    declared, takes anything, or has a broken schema.
    """

    call: Call
    name: str
    text: str
    tool: Tool | None
    schema: Schema | None

    @cached_property
    def parsed(self) -> Parsed:
        """The arguments as strict JSON."""
        return parse_strict(self.text)

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments when they are an object, in strict JSON: only then a schema is asked."""
        found = self.parsed
        return found.value if found.flaw is None and isinstance(found.value, dict) else None


@dataclass(frozen=True)
class Case:
    """One answer, its request, and the tools to judge with.

    ``reference`` is what the reference answered to the same prompt, where that
    is known. ``completion_tokens`` is ``None`` when it was not stated or counts
    several choices. ``by_block``: indices count text as well as calls.
    """

    asked: Asked
    answer: Answer
    schemas: Schemas
    markers: Markers
    completion_tokens: int | None = None
    usage: bool = False
    by_block: bool = False
    reference: str | None = None
    calls: tuple[Judged, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", tuple(self._judged()))

    def _judged(self) -> Iterator[Judged]:
        for call in self.answer.calls:
            name, text = call.name.value, call.arguments.value
            tool = self.asked.tools.get(name)
            if tool is None:
                name = self.markers.before(name).strip() or self.markers.strip(name).strip()
                tool = self.asked.tools.get(name)
            schema = None
            if tool is not None and tool.parameters not in (None, {}):
                schema = self.schemas.get(tool.parameters)
            if schema is not None and schema.broken:
                schema = None
            if next(self.markers.find(text), None) and parse_strict(text).value is None:
                text = self.markers.strip(text)
            yield Judged(call, name, text, tool, schema)

    @property
    def delivered(self) -> bool:
        """Whether any call came out as a call."""
        return bool(self.calls)

    @property
    def capped(self) -> bool:
        """Whether the answer used all the tokens that it was allowed."""
        return (
            self.asked.cap is not None
            and self.completion_tokens is not None
            and self.completion_tokens >= self.asked.cap
        )

    def mentioned(self, marker: str) -> bool:
        """Whether the caller's own prompt or tools hold the marker."""
        return marker in self.asked.haystack


def json_of(value: object) -> Mapping[str, Any]:
    """Return the value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
