"""One fault of one answer, and the table of codes with their order, severity and party."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ringtrue.records import Party, Severity


@dataclass(frozen=True, slots=True)
class Span:
    """Where a fault was seen.

    ``start`` and ``end`` are offsets in UTF-8 bytes of the assembled ``field``
    (``content``, ``reasoning``, ``name``, ``arguments``), and depend on the text
    alone. ``chunk`` is the chunk of the stream in which the span begins,
    counted from 0; ``None`` for a plain answer. A fault of a delta as such has
    a chunk and no offsets.
    """

    field: str
    chunk: int | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One statement about one answer.

    ``call`` is the position of the call it concerns, in the order of opening,
    and ``None`` when it concerns the answer. ``dialect`` is the JSON Schema
    dialect that was used. ``detail`` names paths and keywords of the caller's
    schema; it never holds text of the answer.
    """

    code: str
    severity: Severity
    party: Party
    call: int | None = None
    span: Span | None = None
    dialect: str | None = None
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``ringtrue validate --format json`` prints in ``findings``."""
        span = self.span
        return {
            "code": self.code,
            "severity": self.severity.value,
            "party": self.party.value,
            "call": self.call,
            "span": None
            if span is None
            else {"field": span.field, "chunk": span.chunk, "start": span.start, "end": span.end},
            "dialect": self.dialect,
        }


_FAMILIES = {
    "request": "broken_schema",
    "stream": "sibling_lost index_reused call_duplicated name_resent null_identity empty_identity"
    " null_list parity",
    "leak": "content reasoning call_swallowed name arguments unparsed_json unclosed",
    "args": "truncated_head truncated_tail value_lost duplicated empty_stream double_encoded"
    " nested_double_encoded not_json not_object nan duplicate_key",
    "name": "unknown",
    "schema": "stringified_scalar string_as_number missing_required additional_property enum type"
    " range pattern other",
    "id": "missing duplicate family_format",
    "choice": "none_violated required_violated wrong_function",
    "finish": "no_call stop_with_call length_hidden missing duplicate",
    "usage": "missing",
    "output": "empty reasoning_only runaway_calls degenerate_loop unexpected_script structured_invalid",
}
CODES: tuple[str, ...] = tuple(
    f"{family}.{name}" for family in _FAMILIES for name in _FAMILIES[family].split()
)
"""Every code, most upstream first: request, stream, leak, args, name, schema, id, choice, finish, ..."""

_WARNINGS = frozenset(
    {
        "stream.name_resent",
        "stream.null_identity",
        "stream.empty_identity",
        "stream.null_list",
        "usage.missing",
    }
)
_PROVIDERS = ("stream.", "leak.", "id.", "choice.", "finish.", "usage.")
_BY_PROVIDER = frozenset(
    {"args.empty_stream", "output.empty", "output.structured_invalid"}
    | {code for code in CODES if code.startswith(_PROVIDERS)}
)
_RANK = {code: rank for rank, code in enumerate(CODES)}


def severity_of(code: str) -> Severity:
    """Return how loudly a code speaks: a broken request is no fault of the answer."""
    if code == "request.broken_schema":
        return Severity.INFO
    return Severity.WARN if code in _WARNINGS else Severity.FAIL


def party_of(code: str) -> Party:
    """Return who has to act, as far as the answer alone tells.

    Whether wrong arguments are the model's or the parser's only the raw text
    can say: until then the party is ``unknown``.
    """
    if code == "request.broken_schema":
        return Party.CALLER
    return Party.PROVIDER if code in _BY_PROVIDER else Party.UNKNOWN


def fault(
    code: str,
    *,
    call: int | None = None,
    span: Span | None = None,
    dialect: str | None = None,
    detail: str = "",
    party: Party | None = None,
) -> Fault:
    """Return a fault with the severity and the party of its code.

    Raises:
        ValueError: there is no such code.
    """
    if code not in _RANK:
        raise ValueError(f"there is no code {code}")
    return Fault(code, severity_of(code), party or party_of(code), call, span, dialect, detail)


def in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the faults most upstream first, those of one code by call."""
    return tuple(
        sorted(faults, key=lambda found: (_RANK[found.code], -1 if found.call is None else found.call))
    )
