"""The regular expressions of a schema: how many, and what they may cost before anything is matched.

The engine of jsonschema-rs runs plain expressions in linear time; those with
lookaround or references back are tried step by step, up to a limit. Neither
bounds what many expressions, each on many strings, cost together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

MOST_PATTERNS = 500  # in one schema
MOST_MATCHES = 20_000  # of names against patternProperties: some 5 ms
MOST_TRIED = 200  # matches step by step, of at most MOST_STEPS each: 0.1 s at worst
MOST_STEPS = 10_000
_PROGRAM, _PROGRAMS = 10_000_000, 20_000_000  # bytes, of one expression and of all: 0.07 s to compile
_STEP_BY_STEP = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9kK]|[*+?}]\+")


@dataclass(frozen=True, slots=True)
class Patterns:
    """Counts: different expressions, those of ``patternProperties``, and those tried step by step."""

    different: int
    of_names: int
    step_by_step: int

    @property
    def multiply(self) -> bool:
        """Whether what they cost depends on how many strings a value has."""
        return bool(self.of_names or self.step_by_step)

    def affordable(self, strings: int) -> bool:
        """Tell whether a value with so many strings, names included, may be matched."""
        return self.of_names * strings <= MOST_MATCHES and self.step_by_step * strings <= MOST_TRIED

    def options(self) -> jsonschema_rs.FancyRegexOptions:
        """Return the limits for each expression, so that all together keep theirs."""
        size = min(_PROGRAM, _PROGRAMS // max(self.different, 1))
        return jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_STEPS, size_limit=size)


def patterns_of(schema: Any) -> Patterns:
    """Count the expressions of a schema; one in an example or a default counts too."""
    patterns: list[str] = []
    of_names = 0
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, Mapping):
            pattern, names = node.get("pattern"), node.get("patternProperties")
            if isinstance(pattern, str):
                patterns.append(pattern)
            if isinstance(names, Mapping):
                patterns.extend(names)
                of_names += len(names)
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)
    step_by_step = sum(_STEP_BY_STEP.search(pattern) is not None for pattern in patterns)
    return Patterns(len(set(patterns)), of_names, step_by_step)
