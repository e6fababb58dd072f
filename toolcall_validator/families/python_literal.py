"""Literals in Python's syntax, read without Python's compiler.

``ast.parse`` warns about escapes, gives no value for a cut text and needs the
whole of it at once; models also write JSON's ``true``, ``false`` and ``null``.
"""

from __future__ import annotations

import re

from toolcall_validator.families.json_body import skip_space
from toolcall_validator.families.rendering import as_json

_DEPTH = 64
_NUMBER = re.compile(r"-?(?:\d[\d_]{0,4000}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "\n": ""}
_HEX = {"x": 2, "u": 4, "U": 8}
_CLOSING = {"[": "]", "(": ")", "{": "}"}


class BrokenLiteralError(Exception):
    """The text is no literal from ``at`` on; ``at`` is its length where it was cut."""

    def __init__(self, at: int) -> None:
        super().__init__(f"no literal at character {at}")
        self.at = at


def read_literal(text: str, at: int, depth: int = 0) -> tuple[object, int]:
    """Return the value that begins at ``at``, and where it ends; tuples become lists.

    Raises:
        BrokenLiteralError: there is none, or it is nested more than 64 deep.
    """
    sign = text[at : at + 1]
    if depth > _DEPTH or not sign:
        raise BrokenLiteralError(at)
    if sign in "\"'":
        return _string(text, at)
    if sign in _CLOSING:
        return _several(text, at, depth)
    if (number := _NUMBER.match(text, at)) is not None:
        whole = re.fullmatch(r"-?[\d_]+", number[0])
        try:
            return (int if whole else float)(number[0]), number.end()
        except ValueError:
            raise BrokenLiteralError(at) from None
    word = _WORD.match(text, at)
    if word is None or word[0] not in _WORDS:
        raise BrokenLiteralError(len(text) if word is not None and word.end() == len(text) else at)
    return _WORDS[word[0]], word.end()


def as_python(value: object) -> str:
    """Return a JSON value as a Python literal on one line."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(as_python, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_json(key)}: {as_python(item)}" for key, item in value.items()) + "}"
    return as_json(value)


def _several(text: str, at: int, depth: int) -> tuple[object, int]:
    """Read a list, a tuple or a dictionary."""
    pairs, close = text[at] == "{", _CLOSING[text[at]]
    values: list[object] = []
    found: dict[str, object] = {}
    at = skip_space(text, at + 1)
    while not text.startswith(close, at):
        value, at = read_literal(text, at, depth + 1)
        at = skip_space(text, at)
        if pairs:
            if not isinstance(value, str) or not text.startswith(":", at):
                raise BrokenLiteralError(at)
            found[value], at = read_literal(text, skip_space(text, at + 1), depth + 1)
            at = skip_space(text, at)
        else:
            values.append(value)
        if text.startswith(",", at):
            at = skip_space(text, at + 1)
        elif not text.startswith(close, at):
            raise BrokenLiteralError(at)
    return (found if pairs else values), at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    quote, at = text[at], at + 1
    plain = re.compile(rf"[^\\{quote}]+")
    parts: list[str] = []
    while at < len(text):
        if text[at] == quote:
            return "".join(parts), at + 1
        if text[at] == "\\":
            part, at = _escape(text, at + 1)
            parts.append(part)
        elif (run := plain.match(text, at)) is not None:
            parts.append(run[0])
            at = run.end()
    raise BrokenLiteralError(len(text))


def _escape(text: str, at: int) -> tuple[str, int]:
    letter = text[at : at + 1]
    digits = text[at + 1 : at + 1 + _HEX.get(letter, 0)]
    if letter in _HEX and re.fullmatch(r"[0-9a-fA-F]+", digits) and len(digits) == _HEX[letter]:
        code = int(digits, 16)
        # Python writes a character beyond the first plane whole, JSON as two halves.
        low = re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", text[at + 5 : at + 11])
        if letter == "u" and 0xD800 <= code < 0xDC00 and low is not None:
            return chr(0x10000 + (code - 0xD800) * 0x400 + int(low[1], 16) - 0xDC00), at + 11
        if code <= 0x10FFFF:
            return chr(code), at + 1 + len(digits)
    if letter in _ESCAPES:
        return _ESCAPES[letter], at + 1
    return (letter if letter in "\\'\"/" else f"\\{letter}"), at + len(letter)
