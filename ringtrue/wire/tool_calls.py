"""Tool calls of a stream, put together as tolerantly as common clients do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ToolCallAssembler:
    """Collects deltas by their index.

    Forgives what clients forgive: a missing index (a new id opens a call, else
    the last one goes on), an index used again under another id (a new call), a
    name repeated whole in every delta, null or empty ids and names. What was
    forgiven is for the judges to find in the deltas themselves.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take in one entry of ``delta.tool_calls``."""
        call = self._find(delta)
        call.id = call.id or _string(delta.get("id"))
        call.type = _string(delta.get("type")) or call.type
        function = delta.get("function")
        if isinstance(function, Mapping):
            call.add_name(_string(function.get("name")))
            call.arguments.append(_string(function.get("arguments")))

    def calls(self) -> tuple[Mapping[str, Any], ...]:
        """The calls in the order in which they were opened, shaped like those of a plain answer."""
        return tuple(call.finished() for call in self._calls)

    def _find(self, delta: Mapping[str, Any]) -> _Call:
        index, new_id = delta.get("index"), _string(delta.get("id"))
        if isinstance(index, int):
            call = self._at.get(index)
        else:
            known = [call for call in self._calls if call.id == new_id]
            call = known[-1] if known else None if new_id or not self._calls else self._calls[-1]
        if call is None or (new_id and call.id and new_id != call.id):
            call = _Call()
            self._calls.append(call)
        if isinstance(index, int):
            self._at[index] = call
        return call


class _Call:
    def __init__(self) -> None:
        self.id = ""
        self.type = "function"
        self.name = ""
        self.arguments: list[str] = []

    def add_name(self, part: str) -> None:
        if part != self.name:
            self.name += part

    def finished(self) -> Mapping[str, Any]:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id or None, "type": self.type, "function": function}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
