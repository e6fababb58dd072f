"""Mistral: calls behind ``[TOOL_CALLS]``, by name or as a JSON list.

Source: the templates of Mistral Nemo, Mistral Small 3.2 and Ministral 3,
mistral-common, and vLLM's ``mistral`` parser. A completion may hold either
form; identities are nine letters or digits::

    [TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{"city": "Oslo"}

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "a1B2c3D4e"}]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcall_validator.families.json_body import first_of, members, read_body, skip_space
from toolcall_validator.families.json_call import call_in
from toolcall_validator.families.layout import Layout
from toolcall_validator.families.parsed import RawCall, Trouble
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import as_json, thought

OPEN, ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_HEAD = re.compile(
    r"\s*(?P<name>[^\[\]{}\s]*)\s*(?:\[CALL_ID\](?P<id>[^\[\]{}]*))?(?P<args>\[ARGS\])?\s*(?=[{\[\"]|\Z)?"
)


def _read(reading: Reading, found: re.Match[str]) -> int:
    text, at = reading.text, skip_space(reading.text, found.end())
    if text.startswith(("[{", "[ {", "[\n", "[]"), at):
        return _read_list(reading, found.start(), at + 1)
    head = _HEAD.match(text, at)
    if head is None:
        return at
    troubles: tuple[Trouble, ...] = () if head["name"] else (Trouble.NO_NAME,)
    body = read_body(text, head.end(), None, (OPEN,))
    arguments = text[body.start : body.end]
    troubles += body.troubles if arguments else (Trouble.NO_ARGUMENTS, *body.troubles[:1])
    call = RawCall(head["name"], arguments, head["id"] or None, (found.start(), body.next))
    reading.add(call, *troubles)
    return body.next


def _read_list(reading: Reading, start: int, at: int) -> int:
    """Read calls up to the bracket that closes the list."""
    text, calls = reading.text, len(reading.calls)
    while (at := skip_space(text, at)) < len(text) and not text.startswith("]", at):
        _, stop = members(text, at)
        whole = stop is not None
        end = first_of(text, at + 1, (OPEN,)) if stop is None else stop
        call, troubles = call_in(text, at, end, (at, end), ("arguments",))
        reading.add(call, *(() if whole else (Trouble.UNCLOSED,)), *troubles)
        at = skip_space(text, end)
        if not whole:
            return at
        at += text.startswith(",", at)
    if len(reading.calls) == calls:
        reading.wrong(Trouble.EMPTY_ENVELOPE, start, at)
    if at >= len(text):
        reading.wrong(Trouble.UNCLOSED, start, at)
        return at
    return at + 1


LAYOUT = Layout(re.compile(re.escape(OPEN)), _read, ("</s>",), (ID, ARGUMENTS), think=("[THINK]", "[/THINK]"))


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn with calls by name; identities are written where a call has one."""
    written = [
        f"{OPEN}{call.name}{ID + call.id if call.id else ''}{ARGUMENTS}{call.arguments}" for call in calls
    ]
    return thought(reasoning, "[THINK]", "[/THINK]") + content + "".join(written)


def render_list(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn with the calls as one JSON list."""
    listed = [
        f'{{"name": {as_json(call.name)}, "arguments": {call.arguments}'
        + (f', "id": {as_json(call.id)}}}' if call.id else "}")
        for call in calls
    ]
    section = f"{OPEN}[{', '.join(listed)}]" if calls else ""
    return thought(reasoning, "[THINK]", "[/THINK]") + content + section
