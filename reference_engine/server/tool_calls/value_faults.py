"""Arguments that stop meeting their schema, each by one keyword."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from reference_engine.server.tool_calls.scene import Scene
from toolcall_validator.families import RawCall
from toolcall_validator.families.rendering import as_json
from toolcall_validator.schemas import Schema, TooCostlyError

Change = Callable[[Any], Iterator[Any]]
Spoiler = Callable[[RawCall, Scene], RawCall]

_RANGES = frozenset(
    f"{side}{what}"
    for side in ("min", "max")
    for what in ("imum", "Length", "Items", "Properties", "Contains")
) | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"}
_FAR = 10**9 + 1
_LONG = 4_096  # characters or items that few bounds allow


def _as_strings(value: Any) -> Iterator[Any]:
    if isinstance(value, bool | int | float):
        yield json.dumps(value)


def _as_number(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        yield 3


def _without_a_key(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from ({key: inner for key, inner in value.items() if key != left} for left in value)


def _with_a_key(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield {**value, "extra_hint": "none"}


def _with_a_suffix(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        yield f"{value}_x"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value + _FAR


def _wrapped(value: Any) -> Iterator[Any]:
    yield {"value": value} if isinstance(value, list) else [value]


def _far_away(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        yield from ("", value + "x" * _LONG)
    elif isinstance(value, list):
        yield from ([], (value or [None]) * 2, (value or [None]) * _LONG)
    elif isinstance(value, dict):
        yield {}
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (_FAR, -_FAR, value + 0.5)


def _odd(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        yield from ("~~", "~" * len(value))


def _anything(value: Any) -> Iterator[Any]:
    for change in (_with_a_key, _without_a_key, _far_away, _odd, _wrapped, _as_number):
        yield from change(value)


_CHANGES: dict[str, tuple[Change, frozenset[str]]] = {
    "stringified_scalar": (_as_strings, frozenset({"type", "enum", "const"})),
    "string_as_number": (_as_number, frozenset({"type"})),
    "missing_required": (_without_a_key, frozenset({"required", "dependentRequired"})),
    "additional_property": (_with_a_key, frozenset({"additionalProperties", "unevaluatedProperties"})),
    "enum": (_with_a_suffix, frozenset({"enum", "const"})),
    "type": (_wrapped, frozenset({"type"})),
    "range": (_far_away, _RANGES),
    "pattern": (_odd, frozenset({"pattern"})),
}
_NAMED = frozenset().union(*(keywords for _, keywords in _CHANGES.values()))


def schema_faults() -> dict[str, Spoiler]:
    """Return the faults by code. Each changes one value, so that a keyword of its code is broken.

    A call whose schema has no such keyword stays as it is. Changes that break
    nothing else are preferred.
    """
    table = {f"schema.{name}": _spoiler(*how) for name, how in _CHANGES.items()}
    return table | {"schema.other": _spoiler(_anything, None)}


def _spoiler(change: Change, keywords: frozenset[str] | None) -> Spoiler:
    def spoil(call: RawCall, scene: Scene) -> RawCall:
        schema = scene.schema(call.name)
        try:
            value = json.loads(call.arguments)
        except ValueError:
            return call
        changed = None if schema is None else _broken(value, schema, change, keywords)
        return call if changed is None else replace(call, arguments=as_json(changed))

    return spoil


def _broken(value: Any, schema: Schema, change: Change, keywords: frozenset[str] | None) -> Any:
    """Return a changed value that breaks one of ``keywords`` (``None``: one that has no code)."""
    second = None
    for candidate in _everywhere(value, change):
        if not candidate and value:
            continue  # an empty object says that everything was lost
        try:
            broken = {found.keyword for found in schema.violations(candidate)}
        except TooCostlyError:
            return None
        wanted = broken - _NAMED if keywords is None else broken & keywords
        if wanted and wanted == broken:
            return candidate
        if wanted and second is None:
            second = candidate
    return second


def _everywhere(value: Any, change: Change) -> Iterator[Any]:
    """Yield the value with one place of it changed, inner places first."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: changed} for changed in _everywhere(inner, change))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for changed in _everywhere(inner, change):
                yield [*value[:place], changed, *value[place + 1 :]]
    yield from change(value)
