"""Turns as templates write them: the pieces that several families share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ringtrue.errors import UsageError
from toolcall_validator.families.parsed import RawCall
from toolcall_validator.strict_json import Flaw, parse_strict


def arguments_of(call: RawCall, family: str) -> Mapping[str, Any]:
    """Return the arguments as a mapping, for formats that write each parameter by itself.

    Raises:
        UsageError: they are not a JSON object, and so can't be written in this format.
    """
    found = parse_strict(call.arguments)
    if found.flaw in (Flaw.NOT_JSON, Flaw.DUPLICATE_KEY) or not isinstance(found.value, dict):
        raise UsageError(
            f"the arguments of {call.name} are not a JSON object",
            where=f"family {family}",
            remedy="This format writes each parameter by itself; choose one that holds JSON",
        )
    return found.value


def as_json(value: object) -> str:
    """Return a value as templates print it: with spaces after separators, letters as they are."""
    return json.dumps(value, ensure_ascii=False)


def bare(value: object) -> str:
    """Return a string as it is, and anything else as JSON."""
    return value if isinstance(value, str) else as_json(value)


def thought(reasoning: str, before: str = "<think>\n", after: str = "\n</think>\n\n") -> str:
    """Return the reasoning between its marks, nothing when there is none."""
    return f"{before}{reasoning}{after}" if reasoning else ""
