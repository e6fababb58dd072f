"""What a raw completion says, once its family's format is taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

Schemas: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The ``parameters`` schema of each declared function, by its name."""

Region: TypeAlias = tuple[int, int]
"""Begin and end, in characters of the raw completion."""


class Trouble(StrEnum):
    """What is wrong with a raw completion, by itself."""

    UNCLOSED = "unclosed"  # the text ends, or the next part begins, inside a call
    NOT_JSON = "not_json"  # the arguments, or the object that holds the call, are not one JSON value
    MALFORMED = "malformed"  # a call that does not follow the family's grammar
    NO_NAME = "no_name"
    NO_ARGUMENTS = "no_arguments"
    NO_ENVELOPE = "no_envelope"  # a call outside the section that the family puts calls into
    EMPTY_ENVELOPE = "empty_envelope"  # a section that opens and holds no call
    STRAY_TEXT = "stray_text"  # text where only calls may stand
    STRAY_MARKER = "stray_marker"  # a marker that belongs to no call
    REASONING_UNCLOSED = "reasoning_unclosed"
    CALL_IN_REASONING = "call_in_reasoning"


@dataclass(frozen=True, slots=True)
class RawCall:
    """One call as the model wrote it.

    ``arguments`` is the text of the JSON value, verbatim where the format
    holds JSON, put together from the parameters where it holds tags. ``id`` is
    the identity that stands in the text, ``None`` where the format has none.
    ``typed`` is false where the format doesn't tell 3 from "3" and no schema
    did: scalars are then the best guess.
    """

    name: str
    arguments: str
    id: str | None = None
    span: Region = (0, 0)
    typed: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; ``call`` is the position in ``Parsed.calls`` of the call it concerns."""

    trouble: Trouble
    span: Region
    call: int | None = None


@dataclass(frozen=True, slots=True)
class Leftover:
    """Text that is neither content nor reasoning nor part of a call."""

    text: str
    span: Region


@dataclass(frozen=True, slots=True)
class Parsed:
    """A raw completion taken apart.

    ``content`` and ``reasoning`` come without the white space around them,
    which templates add and drop at will. Invariant: nothing is lost silently.
    A call that is cut or broken is in ``calls`` and has a problem; what could
    not be placed is a leftover and has a problem.
    """

    content: str = ""
    reasoning: str = ""
    calls: tuple[RawCall, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    problems: tuple[Problem, ...] = ()
