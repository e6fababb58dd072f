"""MiniMax: an envelope of invocations with a tag for each parameter.

Source: the template of MiniMax-M2, and vLLM's ``minimax_m2`` parser::

    <minimax:tool_call>
    <invoke name="get_weather"><parameter name="city">Oslo</parameter>
    </invoke>
    </minimax:tool_call>

The value is written bare, so that only the schema tells 3 from "3".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcall_validator.families.layout import Layout
from toolcall_validator.families.parsed import RawCall
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import arguments_of, bare, thought
from toolcall_validator.families.section import Section
from toolcall_validator.families.tagged import Tags

OPEN, CLOSE = "<minimax:tool_call>", "</minimax:tool_call>"
INVOKE, INVOKE_END = "<invoke name=", "</invoke>"
_NAME = re.compile(r"""<invoke name=["']?(?P<name>[^"'<>\n]*)["']?>?""")
_TAGS = Tags(
    re.compile(r"""<parameter name=["']?(?P<key>[^"'<>\n]*)["']?>"""),
    "</parameter>",
    INVOKE_END,
    (CLOSE, INVOKE),
)


def _read_invoke(reading: Reading, start: int) -> int:
    found = _NAME.match(reading.text, start)
    name, end = ("", start + len(INVOKE)) if found is None else (found["name"].strip(), found.end())
    return _TAGS.read(reading, start, end, name)


_SECTION = Section({OPEN: CLOSE}, INVOKE, _read_invoke)
LAYOUT = Layout(
    re.compile(f"{re.escape(OPEN)}|{re.escape(INVOKE)}"),
    _SECTION.read,
    ("[e~[",),
    (CLOSE, INVOKE_END),
)


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn.

    Raises:
        UsageError: the arguments of a call are not a JSON object.
    """
    section = f"\n{OPEN}\n{''.join(map(_written, calls))}{CLOSE}" if calls else ""
    return thought(reasoning) + content + section


def _written(call: RawCall) -> str:
    given = arguments_of(call, "minimax").items()
    parameters = [f'<parameter name="{key}">{bare(value)}</parameter>\n' for key, value in given]
    return f'{INVOKE}"{call.name}">\n{"".join(parameters)}{INVOKE_END}\n'
