"""What a reading of a template's source finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ringtrue.records import Severity


class Rule(StrEnum):
    """What a template can be reproached with, or has to be known for."""

    TOOLS_IGNORED = "tools.ignored"
    TOOLS_UNWRITTEN = "tools.unwritten"
    SYSTEM_DROPPED = "system.dropped"
    SYSTEM_REFUSED = "system.refused"
    GENERATION_PROMPT_MISSING = "generation_prompt.missing"
    GENERATION_PROMPT_ALWAYS = "generation_prompt.always"
    DATE_CLOCK = "date.clock"
    DATE_FIXED = "date.fixed"
    VARIABLE_UNDEFINED = "variable.undefined"
    TOJSON_ESCAPED = "tojson.escaped"
    TOJSON_SORTED = "tojson.sorted"
    TOJSON_ASCII = "tojson.ascii"
    NEWLINE_LOST = "newline.lost"
    TEMPLATE_BROKEN = "template.broken"
    TEMPLATE_COSTLY = "template.costly"


@dataclass(frozen=True, slots=True)
class Flaw:
    """One statement about a template, with the line of its source, counted from 1."""

    rule: Rule
    severity: Severity
    line: int
    message: str
