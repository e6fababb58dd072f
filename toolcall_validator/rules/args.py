"""Arguments as JSON: they must be an object before a schema is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ringtrue.records import Party
from toolcall_validator.case import Case, Judged
from toolcall_validator.fault import Fault, fault
from toolcall_validator.schemas import TooCostlyError
from toolcall_validator.strict_json import Flaw, complete_object, completed, first_value, parse_strict

_HEADS = (
    "{",
    '{"',
    '{"k',
    '{"k"',
    '{"k":',
    '{"k":"',
    '{"k":{',
    '{"k":{"',
    '{"k":[',
    '{"k":["',
    '{"k":{"k":"',
)
_NAN = re.compile(r"(?<![\w\"])-?(NaN|Infinity)(?![\w\"])")


def json_faults(case: Case) -> Iterator[Fault]:
    """What is wrong with each call's arguments as JSON, the one most telling code of each."""
    for judged in case.calls:
        code, detail = _flaw(case, judged)
        if code:
            cut = code == "args.truncated_tail" and case.answer.finish_reason == "length"
            yield fault(
                code,
                call=judged.call.position,
                span=judged.call.arguments.whole,
                dialect=judged.schema.dialect if judged.schema and code == "args.value_lost" else None,
                detail="cut at the cap that the caller set" if cut else detail,
                party=Party.CALLER if cut else None,
            )


def _flaw(case: Case, judged: Judged) -> tuple[str, str]:
    if judged.call.as_object:
        return "args.not_json", "sent as an object, where JSON text is due"
    if not judged.text.strip():
        return _nothing_sent(case, judged)
    parsed = judged.parsed
    if parsed.flaw is Flaw.NOT_JSON:
        return unreadable(judged.text)
    if parsed.flaw is not None:
        return f"args.{parsed.flaw.value}", ""
    if not isinstance(parsed.value, dict):
        return _no_object(parsed.value)
    lost = not parsed.value and _needs_values(judged)
    return ("args.value_lost", "the schema requires values") if lost else ("", "")


def _no_object(value: object) -> tuple[str, str]:
    if isinstance(value, str) and isinstance(parse_strict(value).value, dict | list):
        return "args.double_encoded", ""
    return "args.not_object", "null" if value is None else type(value).__name__


def _nothing_sent(case: Case, judged: Judged) -> tuple[str, str]:
    if judged.call.arguments.value.strip():  # nothing but leaked markers
        return "", ""
    if _needs_values(judged):
        return "args.value_lost", "the schema requires values"
    if case.answer.streamed and judged.tool is not None:
        return "args.empty_stream", ""
    return "args.not_json", "empty"


def unreadable(text: str) -> tuple[str, str]:
    """Return the code for a text that no JSON parser reads, and what was seen; repair only diagnoses."""
    stripped = text.strip()
    first = first_value(stripped) if stripped.startswith("{") else None
    if first is not None:
        rest = stripped[first[1] :].strip()
        head = stripped[: first[1]]
        again = first_value(rest)
        if (again is not None and again[0] == first[0]) or (len(rest) > 1 and head.startswith(rest)):
            return "args.duplicated", ""
        return "args.not_json", "text after the object"
    if completed(stripped):
        return "args.truncated_tail", ""
    headless = not stripped.startswith(("{", "[")) and stripped.endswith("}")
    if headless and any(complete_object(head + stripped) for head in _HEADS):
        return "args.truncated_head", ""
    if _NAN.search(stripped) and complete_object(_NAN.sub("0", stripped)):
        return "args.nan", ""
    return "args.not_json", ""


def _needs_values(judged: Judged) -> bool:
    try:
        return judged.schema is not None and not judged.schema.accepts({})
    except TooCostlyError:
        return False
