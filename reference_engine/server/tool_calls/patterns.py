"""A text that a regular expression matches, for the plain expressions that schemas hold."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

_CLASSES = {
    "d": string.digits,
    "w": string.ascii_lowercase + string.digits,
    "s": " ",
    "D": string.ascii_lowercase,
    "W": "-",
    "S": string.ascii_lowercase,
}
_ANY = string.ascii_lowercase
MOST = 4_096  # repeats, characters or items that a schema may ask for
_LONGER = 2  # repeats beyond the fewest that an open quantifier allows

Writer = Callable[[random.Random], str]


class UnwritableError(Exception):
    """No text can be written: the expression or the schema uses what this server cannot meet."""


def matching(pattern: str, rng: random.Random) -> str:
    """Return a text that ``pattern`` matches: literals, classes, groups, alternatives, quantifiers.

    Raises:
        UnwritableError: the expression holds something else, such as a look-around.
    """
    reader = _Reader(pattern)
    writer = reader.alternatives()
    if reader.at < len(pattern):
        raise UnwritableError(f"the pattern {pattern!r}")
    return writer(rng)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def alternatives(self) -> Writer:
        options = [self._sequence()]
        while self._takes("|"):
            options.append(self._sequence())
        return lambda rng: rng.choice(options)(rng)

    def _sequence(self) -> Writer:
        parts: list[Writer] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self._repeated(self._atom()))
        return lambda rng: "".join(part(rng) for part in parts)

    def _atom(self) -> Writer:
        sign = self._next()
        if sign in "^$":
            return lambda _: ""
        if sign == "(":
            return self._group()
        if sign in "*+?{":
            raise UnwritableError(f"the pattern {self.pattern!r}")
        letters = self._letters(sign)
        return lambda rng: rng.choice(letters)

    def _group(self) -> Writer:
        if self._takes("?") and not self._takes(":"):
            raise UnwritableError(f"the pattern {self.pattern!r}")
        inner = self.alternatives()
        if not self._takes(")"):
            raise UnwritableError(f"the pattern {self.pattern!r}")
        return inner

    def _letters(self, sign: str) -> str:
        if sign == ".":
            return _ANY
        if sign == "[":
            return self._set()
        return self._escaped() if sign == "\\" else sign

    def _escaped(self) -> str:
        sign = self._next()
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign.isalnum():
            raise UnwritableError(f"the pattern {self.pattern!r}")
        return sign

    def _set(self) -> str:
        excluded, letters = self._takes("^"), ""
        while not self._takes("]"):
            sign = self._next()
            if sign == "\\":
                letters += self._escaped()
            elif (
                self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] != "]"
            ):
                self.at += 1
                last = self._next()
                letters += "".join(map(chr, range(ord(sign), min(ord(last), ord(sign) + 127) + 1)))
            else:
                letters += sign
        kept = "".join(sign for sign in _ANY + string.digits if sign not in letters) if excluded else letters
        if not kept:
            raise UnwritableError(f"the pattern {self.pattern!r}")
        return kept

    def _repeated(self, atom: Writer) -> Writer:
        low, high = 1, 1
        if self._takes("*"):
            low, high = 0, _LONGER
        elif self._takes("+"):
            low, high = 1, 1 + _LONGER
        elif self._takes("?"):
            low, high = 0, 1
        elif self._takes("{"):
            low, high = self._counts()
        else:
            return atom
        self._takes("?")  # laziness changes nothing about what matches
        return lambda rng: "".join(atom(rng) for _ in range(rng.randint(low, high)))

    def _counts(self) -> tuple[int, int]:
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at : end].partition(",")
        if end < 0 or not low.isdecimal() or (high and not high.isdecimal()):
            raise UnwritableError(f"the pattern {self.pattern!r}")
        if int(low) > MOST:
            raise UnwritableError(f"more than {MOST:,} repeats")
        self.at = end + 1
        most = int(high) if high else int(low) + _LONGER * bool(comma)
        return int(low), max(int(low), min(most, int(low) + _LONGER))

    def _takes(self, sign: str) -> bool:
        found = self.pattern.startswith(sign, self.at)
        self.at += len(sign) * found
        return found

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise UnwritableError(f"the pattern {self.pattern!r}")
        self.at += 1
        return self.pattern[self.at - 1]
