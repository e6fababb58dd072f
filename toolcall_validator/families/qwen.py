"""Qwen: the Hermes form, and the form of Qwen3-Coder with a tag for each parameter.

Source: the templates of Qwen3, Qwen3-Coder and Qwen3.5, and vLLM's ``qwen3``
parsers. A completion may hold either form::

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Oslo
    </parameter>
    </function>
    </tool_call>

The value is written bare, constants in Python's spelling, so that only the
schema tells 3 from "3".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolcall_validator.families import hermes
from toolcall_validator.families.hermes import BROKEN, CLOSE, OPEN
from toolcall_validator.families.json_body import skip_space
from toolcall_validator.families.layout import Layout
from toolcall_validator.families.parsed import Problem, RawCall, Trouble
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import arguments_of, as_json, thought
from toolcall_validator.families.tagged import Tags

_TAGS = Tags(
    re.compile(r"<parameter=(?P<key>[^<>\n]*)>"),
    "</parameter>",
    "</function>",
    (CLOSE, OPEN, "<function="),
    lines=True,
)
_FUNCTION = "<function="
_NAME = re.compile(r"<function=(?P<name>[^>\n<]*)>?")


def _read(reading: Reading, found: re.Match[str]) -> int:
    text, start = reading.text, found.start()
    at = skip_space(text, found.end()) if found[0] == OPEN else start
    name = _NAME.match(text, at)
    if name is None:
        return hermes.read_object(reading, start, at)
    end = _TAGS.read(reading, start, name.end(), name["name"].strip())
    place = len(reading.calls) - 1
    if found[0] != OPEN:
        reading.problems.append(Problem(Trouble.NO_ENVELOPE, reading.calls[place].span, place))
    after = skip_space(text, end)
    if text.startswith(CLOSE, after):
        end = after + len(CLOSE)
        reading.calls[place] = replace(reading.calls[place], span=(start, end))
        return end
    if found[0] == OPEN:
        reading.problems.append(Problem(Trouble.UNCLOSED, reading.calls[place].span, place))
    return end


LAYOUT = Layout(
    re.compile(rf"<tool_call>(?=\s*(?:[\[{{]|<function=|\Z)|{BROKEN})|<function=(?=[\w.\-]+>\s*<(?:/|par))"),
    _read,
    hermes.ENDS,
    (OPEN, CLOSE, _FUNCTION, "</function>"),
)


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn in the form of Qwen3-Coder.

    Raises:
        UsageError: the arguments of a call are not a JSON object.
    """
    body = f"{content}\n" if content else ""
    return thought(reasoning) + body + "".join(_written(call) for call in calls)


def _written(call: RawCall) -> str:
    given: Mapping[str, object] = arguments_of(call, "qwen_xml")
    lines = [f"<parameter={key}>\n{_bare(value)}\n</parameter>\n" for key, value in given.items()]
    return f"\n{OPEN}\n<function={call.name}>\n{''.join(lines)}</function>\n{CLOSE}"


def _bare(value: object) -> str:
    return as_json(value) if isinstance(value, dict | list) else str(value)
