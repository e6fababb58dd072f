"""Values between tags: which JSON value a parameter's text stands for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolcall_validator.strict_json import parse_strict

_DEPTH = 8  # references and alternatives followed before a type counts as unknown
_PYTHON = {"True": ("true", "boolean"), "False": ("false", "boolean"), "None": ("null", "null")}


def value_of(raw: str, schema: Mapping[str, Any] | None, key: str) -> tuple[str, bool]:
    """Return the JSON text of a parameter's value, and whether its type is certain.

    ``schema`` is the ``parameters`` schema of the function. Where it allows
    strings alone the text is the value; else a text that is JSON of an allowed
    type, or Python's spelling of a constant as some templates write it, is
    that. Without a schema any JSON is taken for what it looks like.
    """
    allowed = None if schema is None else _types(_property(schema, key), schema)
    if allowed == frozenset(("string",)):
        return quoted(raw), True
    bare = raw.strip()
    found = parse_strict(bare)
    if found.flaw is not None:
        constant, kind = _PYTHON.get(bare, ("", ""))
        if allowed is not None and kind in allowed:
            return constant, True
        return quoted(raw), True
    if allowed is None:
        return bare, isinstance(found.value, str)
    if _kinds(found.value) & allowed or "string" not in allowed:
        return bare, True
    return quoted(raw), True


def quoted(text: str) -> str:
    """Return a text as a JSON string."""
    return json.dumps(text, ensure_ascii=False)


def _property(schema: Mapping[str, Any], key: str) -> object:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and key in properties:
        return properties[key]
    return schema.get("additionalProperties")


def _types(schema: object, root: Mapping[str, Any], depth: int = _DEPTH) -> frozenset[str] | None:
    """Return the JSON types that a schema allows, ``None`` when it doesn't say."""
    if not isinstance(schema, Mapping) or depth == 0:
        return None
    stated = schema.get("type")
    kinds: frozenset[str] | None = None
    if isinstance(stated, str):
        kinds = frozenset((stated,))
    elif isinstance(stated, list):
        kinds = frozenset(kind for kind in stated if isinstance(kind, str))
    elif "const" in schema:
        kinds = _kinds(schema["const"])
    elif isinstance(schema.get("enum"), list):
        kinds = frozenset().union(*map(_kinds, schema["enum"]))
    elif isinstance(schema.get("$ref"), str):
        kinds = _types(_pointed(root, schema["$ref"]), root, depth - 1)
    else:
        options = schema.get("anyOf", schema.get("oneOf"))
        each = (
            [_types(option, root, depth - 1) for option in options] if isinstance(options, list) else [None]
        )
        kinds = None if None in each else frozenset().union(*(found for found in each if found))
    return kinds


def _pointed(root: Mapping[str, Any], reference: str) -> object:
    here: object = root
    if not reference.startswith("#/"):
        return None
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        here = here.get(name) if isinstance(here, Mapping) else None
    return here


def _kinds(value: object) -> frozenset[str]:
    if isinstance(value, bool):
        return frozenset(("boolean",))
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset(("integer", "number"))
    names = {float: "number", str: "string", list: "array", dict: "object", type(None): "null"}
    return frozenset((names[type(value)],) if type(value) in names else ())
