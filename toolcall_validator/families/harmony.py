"""Harmony: messages on channels; a call is a message to a function.

Source: OpenAI's harmony format and the template of gpt-oss-120b, and vLLM's
``openai`` parser. The completion goes on after ``<|start|>assistant``. The
recipient stands before the channel or after it::

    <|channel|>analysis<|message|>Which city?<|end|>
    <|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Oslo"}<|call|>

    <|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcall_validator.families.json_body import first_of, read_body
from toolcall_validator.families.layout import without_ends
from toolcall_validator.families.parsed import Parsed, RawCall, Schemas, Trouble
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import thought

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
_STOPS = (END, CALL, RETURN, START, CHANNEL)
_ENDERS = (END, CALL, RETURN)
_TO = re.compile(r"\bto=(?P<name>[^\s<]*)")
_HEAD = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]*))?(?P<to>[ ]?to=[^\s<]{1,256}\s?)?<\|channel\|>(?P<channel>[^<]*)"
    r"(?:<\|constrain\|>[^<]*)?(?P<open><\|message\|>)?"
)


def parse(text: str, schemas: Schemas) -> Parsed:
    """Take a completion apart. Never raises.

    Text without a header is content. Recipients other than functions are
    built-in tools, which no client declared: their messages are leftovers.
    """
    end = without_ends(text, (RETURN,))
    reading = Reading(text[:end], schemas)
    content: list[str] = []
    thoughts: list[str] = []
    at = 0
    while (head := _HEAD.search(reading.text, at)) is not None:
        content.append(_bare(reading, at, head.start()))
        recipient = _recipient(head)
        if head["open"] is None:
            at = _no_message(reading, head, recipient)
        elif recipient.startswith("functions."):
            at = _read_call(reading, head, recipient.removeprefix("functions."))
        else:
            at, body = _read_text(reading, head.end())
            words = head["channel"].split()
            if recipient:
                reading.left(head.start(), at)
            elif words[:1] == ["analysis"]:
                thoughts.append(body)
            else:
                content.append(body)
    content.append(_bare(reading, at, end))
    return reading.parsed("\n".join(filter(None, content)), "\n".join(filter(None, thoughts)))


def _recipient(head: re.Match[str]) -> str:
    for part in (head["role"], head["to"], head["channel"]):
        found = _TO.search(part or "")
        if found is not None:
            return found["name"]
    return ""


def _no_message(reading: Reading, head: re.Match[str], recipient: str) -> int:
    """Take a header that no message follows: a cut call, or a stray marker."""
    cut = head.end() == len(reading.text)
    if recipient.startswith("functions."):
        call = RawCall(recipient.removeprefix("functions."), "", None, head.span())
        reading.add(call, Trouble.UNCLOSED if cut else Trouble.MALFORMED, Trouble.NO_ARGUMENTS)
    else:
        reading.left(head.start(), head.end(), Trouble.STRAY_MARKER)
    return head.end()


def _read_call(reading: Reading, head: re.Match[str], name: str) -> int:
    text = reading.text
    body = read_body(text, head.end(), None, _STOPS)
    after = body.next + next((len(stop) for stop in _ENDERS if text.startswith(stop, body.next)), 0)
    arguments = text[body.start : body.end]
    missing = () if arguments else (Trouble.NO_ARGUMENTS,)
    nameless = () if name else (Trouble.NO_NAME,)
    reading.add(RawCall(name, arguments, None, (head.start(), after)), *nameless, *missing, *body.troubles)
    return after


def _read_text(reading: Reading, start: int) -> tuple[int, str]:
    text = reading.text
    stop = first_of(text, start, _STOPS)
    after = stop + next((len(mark) for mark in _ENDERS if text.startswith(mark, stop)), 0)
    return after, text[start:stop].strip()


def _bare(reading: Reading, start: int, end: int) -> str:
    """Return text outside messages, and note markers in it."""
    piece = reading.text[start:end]
    for found in re.finditer(r"<\|(?:start|channel|message|constrain|end|call|return)\|>", piece):
        reading.left(start + found.start(), start + found.end(), Trouble.STRAY_MARKER)
    return piece.strip()


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn after ``<|start|>assistant``: thoughts, preamble or answer, calls."""
    messages = [thought(reasoning, f"{CHANNEL}analysis{MESSAGE}", END)]
    if content and calls:
        messages.append(f"{CHANNEL}commentary{MESSAGE}{content}{END}")
    elif content:
        messages.append(f"{CHANNEL}final{MESSAGE}{content}")
    messages += [
        f" to=functions.{call.name}{CHANNEL}commentary json{MESSAGE}{call.arguments}{CALL}" for call in calls
    ]
    return f"{START}assistant".join(filter(None, messages))
