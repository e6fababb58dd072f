"""The model's own call protocol in places where a client sees it as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from toolcall_validator.asked import strings_of
from toolcall_validator.case import Case
from toolcall_validator.fault import Fault, fault
from toolcall_validator.markers import Mark, spoken_of, unclosed
from toolcall_validator.strict_json import first_value
from toolcall_validator.text import Text

_MOST_OBJECTS = 64  # objects of a text that are looked at
_MOST_MARKS = 256  # markers of a text that are looked at
_OBJECT = re.compile(r'[\[{]\s*[{"\[]')


def content(case: Case) -> Iterator[Fault]:
    """Markers in the content, outside an envelope that never closes (that is `unclosed_envelope`)."""
    text = case.answer.content
    span = None if case.delivered else unclosed(text.value)
    found = [mark for mark in _marks(case, text.value) if span is None or mark.start < span[0]]
    if span is not None and not _is_leaked(case, text.value, span[0]):
        found = _marks(case, text.value)
    if not found and case.answer.reasoning.value:
        tags = case.markers.thinking(text.value)
        found = [tag for tag in tags if not spoken_of(text.value, tag, delivered=case.delivered)]
    if found:
        yield fault("leak.content", span=text.span(found[0].start, found[0].end))
    elif not case.delivered and (call := _pythonic(case, text.value)) is not None:
        yield fault("leak.content", span=text.span(*call), detail="a call written as code")


def unclosed_envelope(case: Case) -> Iterator[Fault]:
    """A call envelope that opens in content or reasoning and never closes, with no call delivered."""
    if case.delivered:
        return
    texts = (case.answer.content,) if _swallowed(case) else (case.answer.content, case.answer.reasoning)
    for text in texts:
        span = unclosed(text.value)
        if span is not None and _is_leaked(case, text.value, span[0]):
            yield fault("leak.unclosed", span=text.span(*span))
            return


def reasoning(case: Case) -> Iterator[Fault]:
    """Markers in the reasoning: beside a delivered call, or of no call at all."""
    text = case.answer.reasoning
    found = _marks(case, text.value)
    cut = not case.delivered and unclosed(text.value) is not None
    if found and not cut and not _swallowed(case):
        yield fault("leak.reasoning", span=text.span(found[0].start, found[0].end))


def call_swallowed(case: Case) -> Iterator[Fault]:
    """The whole call stayed in the reasoning and none was delivered."""
    span = _swallowed(case)
    if span:
        yield fault("leak.call_swallowed", span=case.answer.reasoning.span(*span))


def name(case: Case) -> Iterator[Fault]:
    """Markers inside a function's name."""
    for judged in case.calls:
        text = judged.call.name
        for mark in _unmentioned(case, text.value):
            yield fault("leak.name", call=judged.call.position, span=text.span(mark.start, mark.end))
            break


def arguments(case: Case) -> Iterator[Fault]:
    """Markers inside arguments."""
    for judged in case.calls:
        text = judged.call.arguments
        found = _marks(case, text.value)
        if found:
            yield fault(
                "leak.arguments", call=judged.call.position, span=text.span(found[0].start, found[0].end)
            )
        elif "\\" in text.value and any(_marks(case, value) for value in strings_of(judged.parsed.value)):
            yield fault("leak.arguments", call=judged.call.position, span=text.whole, detail="escaped")


def unparsed_json(case: Case) -> Iterator[Fault]:
    """A call of a declared tool as plain JSON in the content, and none delivered."""
    text = case.answer.content
    if case.delivered or case.asked.structure is not None or next(iter(_marks(case, text.value)), None):
        return
    span = json_call(text, case.asked.tools)
    if span is not None:
        yield fault("leak.unparsed_json", span=text.span(*span))


def json_call(text: Text, tools: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return where a text holds a JSON call of one of ``tools``: the name, and arguments beside it."""
    at = looked = 0
    while looked < _MOST_OBJECTS and (match := _OBJECT.search(text.value, at)):
        looked += 1
        found = first_value(text.value, match.start())
        if found is not None and any(_calls(value, tools) for value in _entries(found[0])):
            return match.start(), found[1]
        at = match.start() + 1 if found is None else found[1]
    return None


def _entries(value: object) -> Iterator[Mapping[str, Any]]:
    listed = value if isinstance(value, list) else [value]
    for entry in listed:
        if isinstance(entry, dict):
            yield entry
            inner = entry.get("tool_calls")
            yield from (one for one in (inner if isinstance(inner, list) else ()) if isinstance(one, dict))


def _calls(entry: Mapping[str, Any], tools: Mapping[str, Any]) -> bool:
    function = entry.get("function")
    if isinstance(function, dict):
        entry = function
    elif isinstance(function, str):
        entry = {**entry, "name": function}
    named = entry.get("name", entry.get("tool", entry.get("tool_name")))
    has_arguments = any(key in entry for key in ("arguments", "parameters", "args", "input", "tool_input"))
    return isinstance(named, str) and named in tools and has_arguments


def _pythonic(case: Case, text: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"\s*\[\s*([\w.-]+)\((?:\s*\w+\s*=.*)?\)\s*\]\s*", text, re.DOTALL)
    return match.span() if match is not None and match.group(1) in case.asked.tools else None


def _swallowed(case: Case) -> tuple[int, int] | None:
    text = case.answer.reasoning
    if case.delivered or not text.value:
        return None
    found = [mark for mark in _marks(case, text.value) if mark.opens]
    if found:
        start = found[0].start
        if unclosed(text.value) is None or _holds_object(text.value, start):
            return start, len(text.value)
        return None  # it is cut as well: `unclosed_envelope` says so
    return None if case.answer.content.value.strip() else json_call(text, case.asked.tools)


def _holds_object(text: str, start: int) -> bool:
    at = text.find("{", start)
    return at >= 0 and first_value(text, at) is not None


def _unmentioned(case: Case, text: str) -> Iterator[Mark]:
    found = islice(case.markers.find(text), _MOST_MARKS)
    return (mark for mark in found if not case.mentioned(mark.marker))


def _marks(case: Case, text: str) -> list[Mark]:
    if not text:
        return []
    return [m for m in _unmentioned(case, text) if not spoken_of(text, m, delivered=case.delivered)]


def _is_leaked(case: Case, text: str, start: int) -> bool:
    return any(mark.start == start for mark in _marks(case, text))
