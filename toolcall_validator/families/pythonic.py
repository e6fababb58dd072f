"""Llama, pythonic: a list of calls in Python's syntax.

Source: the prompt format of Llama 3.2 and Llama 4, and vLLM's ``pythonic`` and
``llama4_pythonic`` parsers. Llama 4 may put tags around the list::

    <|python_start|>[get_weather(city="Oslo"), now()]<|python_end|>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ringtrue.errors import UsageError
from toolcall_validator.families.json_body import skip_space
from toolcall_validator.families.layout import Layout
from toolcall_validator.families.llama import ENDS
from toolcall_validator.families.parsed import RawCall, Trouble
from toolcall_validator.families.python_literal import BrokenLiteralError, as_python, read_literal
from toolcall_validator.families.reading import Reading
from toolcall_validator.families.rendering import arguments_of, as_json

START, END = "<|python_start|>", "<|python_end|>"
_CALL = re.compile(r"\s*(?P<name>[A-Za-z_][\w.]*)\s*\(")
_KEYWORD = re.compile(r"\s*(?P<key>[A-Za-z_]\w*)\s*=\s*")


def _read(reading: Reading, found: re.Match[str]) -> int:
    text, at = reading.text, found.end()
    while (call := _CALL.match(text, at)) is not None:
        start = call.start("name")
        try:
            arguments, at = _arguments(text, call.end())
        except BrokenLiteralError as broken:
            cut = Trouble.UNCLOSED if broken.at >= len(text) else Trouble.MALFORMED
            end = len(text) if cut is Trouble.UNCLOSED else max(broken.at, call.end())
            rest = RawCall(call["name"], text[call.end() : end].strip(), None, (start, end))
            reading.add(rest, cut, Trouble.NOT_JSON)
            return _closed(text, end)
        reading.add(RawCall(call["name"], arguments, None, (start, at)))
        at = skip_space(text, at)
        if not text.startswith(",", at):
            break
        at += 1
    at = skip_space(text, at)
    if text.startswith("]", at):
        return _closed(text, at + 1)
    reading.wrong(Trouble.UNCLOSED if at >= len(text) else Trouble.MALFORMED, found.start(), at)
    return _closed(text, at)


def _arguments(text: str, at: int) -> tuple[str, int]:
    """Return the keyword arguments as a JSON object, and where the call ends."""
    members: list[str] = []
    at = skip_space(text, at)
    while not text.startswith(")", at):
        key = _KEYWORD.match(text, at)
        if key is None:
            raise BrokenLiteralError(at)
        value, at = read_literal(text, key.end())
        members.append(f"{as_json(key['key'])}: {as_json(value)}")
        at = skip_space(text, at)
        if text.startswith(",", at):
            at = skip_space(text, at + 1)
        elif not text.startswith(")", at):
            raise BrokenLiteralError(at)
    return "{" + ", ".join(members) + "}", at + 1


def _closed(text: str, at: int) -> int:
    after = skip_space(text, at)
    return after + len(END) if text.startswith(END, after) else at


# A list begins with a call, and the call with a keyword or nothing: prose in brackets doesn't.
LAYOUT = Layout(
    re.compile(rf"(?:{re.escape(START)}\s*)?\[(?=\s*[A-Za-z_][\w.]*\(\s*(?:\)|\Z|[A-Za-z_]\w*\s*=))"),
    _read,
    ENDS,
    (START, END, "<|python_tag|>"),
    think=None,
)


def render(calls: Sequence[RawCall], content: str, reasoning: str) -> str:
    """Return the turn. The format has no place for reasoning: it is written in front of the content.

    Raises:
        UsageError: the arguments of a call are not a JSON object of Python identifiers.
    """
    front = [piece for piece in (reasoning, content) if piece]
    listed = ", ".join(map(_written, calls))
    return "\n".join([*front, *([f"[{listed}]"] if calls else [])])


def _written(call: RawCall) -> str:
    given = arguments_of(call, "llama_pythonic")
    wrong = next((key for key in given if not (key.isidentifier() and key.isascii())), None)
    if wrong is not None:
        raise UsageError(
            f"{call.name} has the argument {wrong!r}, which Python can't name",
            where="family llama_pythonic",
            remedy="Choose another format for it",
        )
    return f"{call.name}({', '.join(f'{key}={as_python(value)}' for key, value in given.items())})"
