"""How many calls a model emitted that never came out as calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from toolcall_validator.case import Case
from toolcall_validator.families.formats import FORMATS, Parser
from toolcall_validator.families.parsed import RawCall
from toolcall_validator.fault import Fault
from toolcall_validator.strict_json import parse_strict

_CODES = frozenset(
    {"leak.content", "leak.reasoning", "leak.call_swallowed", "leak.unparsed_json", "leak.unclosed"}
)
_SURE = frozenset({"leak.call_swallowed", "leak.unparsed_json", "leak.unclosed"})
_MOST_TEXT = 16_384  # characters of a field that are read
_MOST_CALLS = 64  # that are counted: one runaway must not outweigh all other answers


def leaked_calls(case: Case, faults: Sequence[Fault]) -> int:
    """Return how many calls stand in content and reasoning as text, beside those that were delivered.

    Counted by the parsers of all families, by the one that reads most of them;
    calls that were delivered as well don't count again. Where nothing was
    delivered and a call is known to have leaked there is at least one, however
    broken it is.
    """
    codes = {found.code for found in faults} & _CODES
    if not codes:
        return 0
    texts = [text.value[:_MOST_TEXT] for text in (case.answer.content, case.answer.reasoning) if text.value]
    declared = {
        name: tool.parameters
        for name, tool in case.asked.tools.items()
        if isinstance(tool.parameters, Mapping)
    }
    readings = [
        [(call, text) for text in texts for call in parser(text, declared).calls] for parser in _parsers()
    ]
    real = [[one for one in reading if _is_real(case, *one)] for reading in readings]
    most = max(len(reading) for reading in real)
    counted = min(_undelivered(case, reading) for reading in real if len(reading) == most)
    opened = any(mark.opens for text in texts for mark in case.markers.find(text))
    least = int(not case.delivered and bool(codes & _SURE or opened))
    return max(min(counted, _MOST_CALLS), least)


def _parsers() -> dict[Parser, None]:
    return dict.fromkeys(form.parse for form in FORMATS.values())


def _undelivered(case: Case, reading: Sequence[tuple[RawCall, str]]) -> int:
    delivered = Counter(_identity(judged.name, judged.text) for judged in case.calls)
    read = Counter(_identity(call.name, call.arguments) for call, _ in reading)
    return (read - delivered).total()


def _is_real(case: Case, call: RawCall, text: str) -> bool:
    """Tell whether a tool of that name is declared, or markers show that it is not just JSON of that form."""
    if not call.name:
        return False
    return call.name in case.asked.tools or next(case.markers.find(text[slice(*call.span)]), None) is not None


def _identity(name: str, arguments: str) -> tuple[str, str]:
    try:
        value = repr(parse_strict(arguments).value)
    except RecursionError:  # nested too deep to compare as values
        value = "None"
    return name, "".join(arguments.split()) if value == "None" else value
