"""GLM: a tag for each call, with a tag for each key and each value.

Source: the templates of GLM-4.5, 4.6 and 4.7, and vLLM's ``glm45`` and
``glm47`` parsers. GLM-4.7 leaves the line breaks out::

    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value>
    </tool_call>

The value is written bare, so that only the schema tells 3 from "3".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcall_validator.families.hermes import BROKEN, CLOSE, OPEN
from toolcall_validator.families.json_body import first_of
from toolcall_validator.families.layout import Layout
from toolcall_validator.families.parsed import RawCall
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import arguments_of, bare, thought
from toolcall_validator.families.tagged import Tags

_KEY = "<arg_key>"
_TAGS = Tags(re.compile(r"<arg_key>(?P<key>[^<]*)</arg_key>\s*<arg_value>"), "</arg_value>", CLOSE, (OPEN,))


def _read(reading: Reading, found: re.Match[str]) -> int:
    stop = first_of(reading.text, found.end(), (_KEY, CLOSE, OPEN))
    return _TAGS.read(reading, found.start(), stop, reading.text[found.end() : stop].strip())


# A tag that no name follows, or a name that nothing follows, is spoken about, not used.
LAYOUT = Layout(
    re.compile(rf"<tool_call>(?=\n?[\w.\-]*\s*(?:<arg_key>|</tool_call>|<tool_call>|\Z)|{BROKEN})"),
    _read,
    ("<|user|>", "<|observation|>", "<|endoftext|>"),
    (OPEN, CLOSE, _KEY, "</arg_key>", "<arg_value>", "</arg_value>"),
)


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn as GLM-4.6 writes it.

    Raises:
        UsageError: the arguments of a call are not a JSON object.
    """
    body = f"\n{content}" if content else ""
    return thought(reasoning, "\n<think>", "</think>") + body + "".join(_written(call) for call in calls)


def _written(call: RawCall) -> str:
    pairs = [
        f"<arg_key>{key}</arg_key>\n<arg_value>{bare(value)}</arg_value>\n"
        for key, value in arguments_of(call, "glm").items()
    ]
    return f"\n{OPEN}{call.name}\n{''.join(pairs)}{CLOSE}"
