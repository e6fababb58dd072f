"""What a template may cost: blocks run, characters written, the size of one value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

_WIDTH = re.compile(r"\d+")
_PADDING = frozenset({"center", "ljust", "rjust", "zfill"})
_BITS = 4096  # of a product or power: more is no arithmetic that a prompt needs
_INDENT = 64


class TooCostlyError(TemplateError):
    """A template went beyond its bounds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one rendering, counted and not timed, so that they are met at the same place every time.

    ``steps`` are blocks entered (a pass of a loop, a branch, a call of a
    macro) and numbers that ``range`` promises; ``characters`` bounds what is
    written in all, and every single value besides.
    """

    steps: int = 1_000_000
    characters: int = 16_000_000

    def check_size(self, size: int) -> None:
        """Raise ``TooCostlyError`` if a value of ``size`` characters, items or columns is too large."""
        if size > self.characters:
            raise TooCostlyError(f"makes a value of more than {self.characters:,} characters")

    def check_value(self, value: object) -> None:
        """As ``check_size``, for the length of a string or container."""
        if isinstance(value, (str, list, tuple, dict)):
            self.check_size(len(value))

    def check_operation(self, operator: str, left: Any, right: Any) -> None:
        """Refuse an operation whose result would be too large, before it is computed."""
        if isinstance(left, int) and isinstance(right, int):
            self._check_numbers(operator, left, right)
        elif operator == "*":
            pair = (left, right) if isinstance(right, int) else (right, left)
            if isinstance(pair[1], int) and hasattr(pair[0], "__len__"):
                self.check_size(len(pair[0]) * max(0, pair[1]))
        elif operator == "%" and isinstance(left, str):
            self.check_format(left, right if isinstance(right, tuple) else (right,))
        elif operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
            self.check_size(len(left) + len(right))

    def _check_numbers(self, operator: str, left: int, right: int) -> None:
        bits = left.bit_length()
        grown = {"*": bits + right.bit_length(), "**": bits * max(0, right)}.get(operator, 0)
        if grown > _BITS:
            raise TooCostlyError(f"makes a number of more than {_BITS:,} bits")

    def check_method(self, text: str, method: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Refuse a call of a string's method that would make it too large; return the arguments to use."""
        if method in _PADDING:
            self._check_widths(args)
        elif method == "expandtabs":
            self.check_size(len(text) + text.count("\t") * max((8, *_numbers(args))))
        elif method == "replace" and len(args) >= 2:
            self.check_replace(text, args[0], args[1])
        elif method == "join" and args:
            return (self.check_join(text, args[0]),)
        return args

    def check_replace(self, text: str, old: object, new: object) -> None:
        """Refuse a replacement that would make the text too large."""
        if isinstance(old, str) and isinstance(new, str):
            self.check_size(len(text) + text.count(old) * len(new))

    def check_join(self, separator: str, parts: Iterable[Any]) -> list[Any]:
        """Return the parts, if joining them makes no text that is too large."""
        kept = []
        size = 0
        for part in parts:
            size += len(separator) + (len(part) if isinstance(part, str) else 1)
            self.check_size(size)
            kept.append(part)
        return kept

    def check_format(self, pattern: str, args: Iterable[Any]) -> None:
        """Refuse a format whose widths, written or given, would make the text too large."""
        self._check_widths(int(digits) for digits in _WIDTH.findall(pattern))
        if "*" in pattern or "{" in pattern:
            self._check_widths(args)

    def _check_widths(self, values: Iterable[Any]) -> None:
        for width in _numbers(values):
            self.check_size(width)

    def check_indent(self, width: object) -> None:
        """Refuse an indentation that multiplies the text."""
        if isinstance(width, int) and width > _INDENT:
            raise TooCostlyError(f"indents by {width:,}, more than {_INDENT}")


def _numbers(values: Iterable[Any]) -> list[int]:
    return [value for value in values if isinstance(value, int)]


class Meter:
    """What one rendering has cost so far."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._steps = 0
        self._characters = 0

    def step(self, steps: int, characters: int) -> None:
        """Count blocks entered and the text written in them as it stands in the template.

        Raises:
            TooCostlyError: either count is beyond its bound.
        """
        self._steps += steps
        if self._steps > self._bounds.steps:
            raise TooCostlyError(
                f"runs more than {self._bounds.steps:,} steps, as a loop or macro without end does"
            )
        self.write(characters)

    def write(self, characters: int) -> None:
        """Count characters written.

        Raises:
            TooCostlyError: the count is beyond its bound.
        """
        self._characters += characters
        if self._characters > self._bounds.characters:
            raise TooCostlyError(f"writes more than {self._bounds.characters:,} characters")
