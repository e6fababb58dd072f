"""Kimi: a section of calls, each headed by its identity.

Source: the templates of Kimi-K2-Instruct and Kimi-K2-Thinking, and vLLM's
``kimi_k2`` parser::

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0
    <|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>

The name stands in the identity alone: ``functions.NAME:INDEX``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcall_validator.families.json_body import first_of, read_body
from toolcall_validator.families.layout import Layout
from toolcall_validator.families.parsed import RawCall, Trouble
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import thought
from toolcall_validator.families.section import Section

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, ARGUMENTS, CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_ID = re.compile(r"(?:functions\.)?(?P<name>.+):\d+")


def _read_call(reading: Reading, start: int) -> int:
    text, at = reading.text, start + len(CALL)
    stop = first_of(text, at, (ARGUMENTS, CALL_END, CALL, SECTION_END))
    header = text[at:stop].strip()
    known = _ID.fullmatch(header)
    name = header.removeprefix("functions.") if known is None else known["name"]
    troubles = () if known else (Trouble.MALFORMED,) if name else (Trouble.NO_NAME,)
    if not text.startswith(ARGUMENTS, stop):
        closed = text.startswith(CALL_END, stop)
        end = stop + len(CALL_END) * closed
        cut = () if closed else (Trouble.UNCLOSED,)
        call = RawCall(name, "", header or None, (start, end))
        reading.add(call, *troubles, Trouble.NO_ARGUMENTS, *cut)
        return end
    body = read_body(text, stop + len(ARGUMENTS), CALL_END, (CALL, SECTION_END))
    call = RawCall(name, text[body.start : body.end], header or None, (start, body.next))
    reading.add(call, *troubles, *body.troubles)
    return body.next


_SECTION = Section({SECTION: SECTION_END}, CALL, _read_call)
LAYOUT = Layout(
    re.compile(f"{re.escape(SECTION)}|{re.escape(CALL)}"),
    _SECTION.read,
    ("<|im_end|>", "[EOS]"),
    (SECTION_END, CALL_END, ARGUMENTS),
)


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn; a call without an identity gets ``functions.NAME:INDEX``."""
    written = [
        f"{CALL}{call.id or f'functions.{call.name}:{place}'}{ARGUMENTS}{call.arguments}{CALL_END}"
        for place, call in enumerate(calls)
    ]
    section = f"{SECTION}{''.join(written)}{SECTION_END}" if calls else ""
    return thought(reasoning, "<think>", "</think>") + content + section
