"""Arguments against the tool's schema, by keyword."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcall_validator.case import Case, Judged
from toolcall_validator.fault import Fault, fault
from toolcall_validator.schemas import TOO_COSTLY, Schema, TooCostlyError, Violation
from toolcall_validator.strict_json import parse_strict

MOST_TEXT = 4 * 1024 * 1024  # characters of arguments; more is a fault in itself
MOST_TRIED = 8  # values of a call that are tried as another type: each asks the schema again
_TRIED = ("type", "enum", "const")
_CODES = {
    "required": "missing_required",
    "dependentRequired": "missing_required",
    "additionalProperties": "additional_property",
    "unevaluatedProperties": "additional_property",
    "enum": "enum",
    "const": "enum",
    "type": "type",
    "pattern": "pattern",
}
_RANGES = frozenset(
    f"{side}{what}" for side in ("min", "max") for what in ("imum", "Length", "Items", "Properties")
) | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minContains", "maxContains", "uniqueItems"}


def violations(case: Case) -> Iterator[Fault]:
    """What each call's arguments break, each code once a call, at its first place."""
    for judged in case.calls:
        if judged.schema is None or judged.arguments is None:
            continue
        dialect = judged.schema.dialect
        position = judged.call.position
        if len(judged.text) > MOST_TEXT:
            yield fault("schema.other", call=position, detail=f"longer than {MOST_TEXT:,} characters")
            continue
        try:
            found = {} if judged.schema.accepts(judged.arguments) else _found(judged, judged.schema)
        except TooCostlyError:
            yield fault("request.broken_schema", call=position, dialect=dialect, detail=TOO_COSTLY)
            continue
        if not judged.arguments and "schema.missing_required" in found:
            continue  # args.value_lost has said it
        for code, violation in found.items():
            yield fault(
                code,
                call=position,
                span=judged.call.arguments.whole,
                dialect=dialect,
                detail=f"{violation.keyword} at {_pointer(violation)}",
            )


def _found(judged: Judged, schema: Schema) -> dict[str, Violation]:
    found: dict[str, Violation] = {}
    tried = 0
    for violation in schema.violations(judged.arguments):
        tried += violation.keyword in _TRIED
        if violation.keyword in _TRIED and tried > MOST_TRIED:
            continue
        found.setdefault(_code(violation, judged.arguments, schema), violation)
    return found


def _code(violation: Violation, arguments: object, schema: Schema) -> str:
    keyword = violation.keyword
    if keyword in _TRIED:
        given = _value_at(arguments, violation.path)
        repaired = _as_other_type(arguments, violation, schema)
        if repaired is not None:
            return repaired
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if keyword == "type" and number and _accepted_as(arguments, violation, schema, str(given)):
            return "schema.string_as_number"
    return f"schema.{'range' if keyword in _RANGES else _CODES.get(keyword, 'other')}"


def _as_other_type(arguments: object, violation: Violation, schema: Schema) -> str | None:
    """Return the code for a string that would be right as the JSON value it spells."""
    given = _value_at(arguments, violation.path)
    if not isinstance(given, str):
        return None
    spelled = given.strip()
    parsed = parse_strict({"True": "true", "False": "false", "None": "null"}.get(spelled, spelled))
    if parsed.flaw is not None or isinstance(parsed.value, str):
        return None
    if isinstance(parsed.value, dict | list):
        return "args.nested_double_encoded" if violation.keyword == "type" else None
    return "schema.stringified_scalar" if _accepted_as(arguments, violation, schema, parsed.value) else None


def _accepted_as(arguments: object, violation: Violation, schema: Schema, value: object) -> bool:
    """Tell whether another value in its place would not break that keyword there."""
    changed = _with(arguments, violation.path, value)
    return all(
        (other.path, other.keyword) != (violation.path, violation.keyword)
        for other in schema.violations(changed)
    )


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _with(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _pointer(violation: Violation) -> str:
    return "/" + "/".join(map(str, violation.path))
