"""Hermes: one JSON object in ``<tool_call>`` tags for each call.

Source: the tool-use templates of NousResearch Hermes 2 Pro and 3 (and of Qwen
2.5 and 3, which took them over), and vLLM's ``hermes`` parser::

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcall_validator.families.json_body import read_body
from toolcall_validator.families.json_call import call_in
from toolcall_validator.families.layout import Layout
from toolcall_validator.families.parsed import RawCall
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import as_json, thought

BROKEN = r"(?=[^<]*</tool_call>)[^<]*?[(\[{:=]"  # closed, and more than words between
OPEN, CLOSE = "<tool_call>", "</tool_call>"
ENDS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>")


def read_object(reading: Reading, start: int, at: int) -> int:
    """Add the call written as JSON from ``at``, in tags that opened at ``start``; return its end."""
    body = read_body(reading.text, at, CLOSE, (OPEN,))
    call, troubles = call_in(reading.text, body.start, body.end, (start, body.next), ("arguments",))
    reading.add(call, *dict.fromkeys((*body.troubles, *troubles)))
    return body.next


def _read(reading: Reading, found: re.Match[str]) -> int:
    return read_object(reading, found.start(), found.end())


# A tag that neither JSON nor its closing tag follows is spoken about, not used.
LAYOUT = Layout(re.compile(rf"<tool_call>(?=\s*(?:[\[{{]|\Z)|{BROKEN})"), _read, ENDS, (OPEN, CLOSE))


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn: reasoning, content, then a tag for each call."""
    tags = [
        f'{OPEN}\n{{"name": {as_json(call.name)}, "arguments": {call.arguments}}}\n{CLOSE}' for call in calls
    ]
    return thought(reasoning) + "\n".join([*([content] if content else []), *tags])
