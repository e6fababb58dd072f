"""Calls spoiled one by one: the text of the arguments, and the name.

Each function takes a call and returns it spoiled, or as it is where it has
nothing to spoil. Before the parser this is a model's fault, behind it a
provider's.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from reference_engine.server.tool_calls.scene import FOREIGN, Scene
from toolcall_validator.families import RawCall
from toolcall_validator.families.rendering import as_json

_FIRST_VALUE = re.compile(r'^\{("(?:[^"\\]|\\.)*": ?)("(?:[^"\\]|\\.)*"|[^\[{",}][^,}]*)')


def truncated_head(call: RawCall, _: Scene) -> RawCall:
    """Lose the bracket that opens the arguments."""
    return replace(call, arguments=call.arguments[1:])


def truncated_tail(call: RawCall, _: Scene) -> RawCall:
    """Lose the bracket that closes the arguments."""
    return replace(call, arguments=call.arguments[:-1])


def value_lost(call: RawCall, _: Scene) -> RawCall:
    """Send an empty object."""
    return replace(call, arguments="{}")


def duplicated(call: RawCall, _: Scene) -> RawCall:
    """Send the object twice, concatenated."""
    return replace(call, arguments=call.arguments * 2)


def empty_stream(call: RawCall, scene: Scene) -> RawCall:
    """Never send the ``{}`` of a call without arguments, in a stream."""
    empty = scene.streamed and call.arguments.strip() == "{}"
    return replace(call, arguments="") if empty else call


def double_encoded(call: RawCall, _: Scene) -> RawCall:
    """Send a JSON string that holds the object."""
    return replace(call, arguments=as_json(call.arguments))


def nested_double_encoded(call: RawCall, _: Scene) -> RawCall:
    """Send the first object or array of the arguments as a string that holds it."""
    value = _object(call)
    key = next((key for key, inner in value.items() if isinstance(inner, dict | list)), None)
    return call if key is None else replace(call, arguments=as_json({**value, key: as_json(value[key])}))


def not_json(call: RawCall, _: Scene) -> RawCall:
    """Write the object as Python prints it."""
    value = _object(call)
    return replace(call, arguments=repr(value) if value else "{,}")


def not_object(call: RawCall, _: Scene) -> RawCall:
    """Put the object into a list."""
    return replace(call, arguments=f"[{call.arguments}]")


def not_a_number(call: RawCall, _: Scene) -> RawCall:
    """Write NaN in place of the first value."""
    return replace(call, arguments=_FIRST_VALUE.sub(r"{\1NaN", call.arguments, count=1))


def duplicate_key(call: RawCall, _: Scene) -> RawCall:
    """Write the first key once more, now with ``null``, which is what most readers then keep."""
    key = next(iter(_object(call)), None)
    return call if key is None else replace(call, arguments=f"{call.arguments[:-1]}, {as_json(key)}: null}}")


def unknown_name(call: RawCall, scene: Scene) -> RawCall:
    """Call a tool that was not declared."""
    name = f"{call.name}_v2"
    while name in scene.asked.tools:
        name += "_v2"
    # Kimi writes the name into the identity and nowhere else.
    identity = call.id and call.id.replace(f"functions.{call.name}:", f"functions.{name}:")
    return replace(call, name=name, id=identity)


def leaked_name(call: RawCall, scene: Scene) -> RawCall:
    """Leave a marker in the name."""
    return replace(call, name=call.name + scene.marker)


def leaked_arguments(call: RawCall, scene: Scene) -> RawCall:
    """Leave a marker in the first string of the arguments, or behind them."""
    value = _object(call)
    key = next((key for key, inner in value.items() if isinstance(inner, str)), None)
    if key is None:
        return replace(call, arguments=call.arguments + scene.marker)
    return replace(call, arguments=as_json({**value, key: f"{value[key] or 'x'}{scene.marker}"}))


def foreign_arguments(call: RawCall, _: Scene) -> RawCall:
    """End the first string of the arguments in another script."""
    value = _object(call)
    key = next((key for key, inner in value.items() if isinstance(inner, str)), None)
    return call if key is None else replace(call, arguments=as_json({**value, key: value[key] + FOREIGN}))


def _object(call: RawCall) -> dict[str, Any]:
    try:
        value = json.loads(call.arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
