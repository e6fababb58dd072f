"""What a server said, piece by piece, in one vocabulary for all shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of ``content`` or ``reasoning``."""

    chunk: int | None
    field: str
    text: str


class CallPart(NamedTuple):
    """A call, or one delta of it.

    Values are as they were sent. ``nulls`` and ``empties`` tell which of id
    and name were there as ``null`` or as ``""``. ``as_object`` is true when
    arguments came as an object where the shape wants JSON text. A stream has
    hundreds of these: a tuple is made three times as fast as a frozen dataclass.
    """

    chunk: int | None
    index: int | None  # type: ignore[assignment]  # hides tuple.index, which nobody asks of a delta
    id: str = ""
    name: str = ""
    arguments: str = ""
    nulls: bool = False
    empties: bool = False
    as_object: bool = False


@dataclass(frozen=True, slots=True)
class NullList:
    """``tool_calls: null`` in a delta."""

    chunk: int | None


@dataclass(frozen=True, slots=True)
class Finish:
    """A finish reason, in the words of chat completions."""

    chunk: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The model declined in the field that the API has for it."""

    chunk: int | None


Event = Words | CallPart | NullList | Finish | Refusal


@dataclass(frozen=True, slots=True)
class Reading:
    """The events of each choice, and what is said once for all of them.

    ``completion_tokens`` is ``None`` when usage did not state it;
    ``usage`` tells whether any usage came at all. ``failed`` is true when the
    server answered with an error and nothing else. ``by_block`` is true for
    shapes whose indices count text as well as calls.
    """

    choices: tuple[tuple[Event, ...], ...]
    completion_tokens: int | None = None
    usage: bool = False
    failed: bool = False
    by_block: bool = False
