"""Llama: calls as bare JSON objects.

Source: the templates of Llama 3.1 to 3.3, and vLLM's ``llama3_json`` parser.
Several calls are parted by semicolons; the tag in front is optional::

    <|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}

An object is a call when it begins with a name (or the type ``function``) and
has parameters; any other JSON is content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcall_validator.families.json_body import members, skip_space
from toolcall_validator.families.json_call import ARGUMENTS, call_in
from toolcall_validator.families.layout import Layout
from toolcall_validator.families.parsed import RawCall, Trouble
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import as_json

ENDS = ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|eom|>")
TAG = "<|python_tag|>"
_OPEN = r'\{(?=\s*"(?:type"\s*:\s*"function"\s*,\s*")?name"\s*:\s*")'


def _read(reading: Reading, found: re.Match[str]) -> int | None:
    text, at = reading.text, found.end() - 1
    places, stop = members(text, at)
    begun = any(key in places for key in ARGUMENTS)
    if not begun and (stop is not None or set(places) - {"name", "type"}):
        return None
    if stop is None:
        following = _NEXT.search(text, found.end())
        end = len(text) if following is None else following.start()
        call, troubles = call_in(text, at, end, (found.start(), end))
        cut = () if following is not None else (Trouble.UNCLOSED,)
        reading.add(call, *cut, *troubles)
        return end if following is None else following.end()
    call, troubles = call_in(text, at, stop, (found.start(), stop))
    reading.add(call, *troubles)
    after = skip_space(text, stop)
    parted = text.startswith(";", after) and text.startswith(("{", TAG), skip_space(text, after + 1))
    return after + 1 if parted else stop


_NEXT = re.compile(r";\s*(?=" + _OPEN + ")")
LAYOUT = Layout(re.compile(rf"(?:{re.escape(TAG)}\s*)?{_OPEN}"), _read, ENDS, (TAG,), think=None)


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn. The format has no place for reasoning: it is written in front of the content."""
    objects = [f'{{"name": {as_json(call.name)}, "parameters": {call.arguments}}}' for call in calls]
    front = [piece for piece in (reasoning, content) if piece]
    return "\n".join([*front, *(["; ".join(objects)] if objects else [])])
