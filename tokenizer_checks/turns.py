"""Whose turn a token of a prompt belongs to, told from the markers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tokenizer_checks.vocabulary import Vocabulary

NAME_TOKENS = 12  # tokens behind a marker in which the name of a role may stand


class Role(StrEnum):
    """Who speaks in a turn."""

    START = "start"  # before the first turn
    SYSTEM = "system"
    TOOLS = "tools"  # a turn of its own for the definitions of tools
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn from the index of its first marker to that of the next turn's."""

    role: Role
    start: int
    stop: int


_NAMES = {
    Role.SYSTEM: "system developer sys",
    Role.TOOLS: "available_tools tools functions",
    Role.USER: "user inst human",
    Role.ASSISTANT: "assistant model ai chatbot bot",
    Role.TOOL: "tool ipython observation",
}
_ROLES = {name: role for role, names in _NAMES.items() for name in names.split()}
_WORD = re.compile(r"[a-z]+(?:_[a-z]+)*")
_BEHIND = re.compile(r'\s*(?:message role=")?([A-Za-z]+)(?![A-Za-z]*[_\'])')
_CLOSING = frozenset({"end", "eot", "eom", "eos", "stop", "call", "calls"})


def turns(ids: Sequence[int], vocabulary: Vocabulary) -> tuple[Turn, ...]:
    """Return the turns of a prompt, in order, without a gap; none for a prompt without markers.

    A role is named by a marker (``<|user|>``, ``[INST]``) or by the word behind
    one (``<|im_start|>user``, ``<|start_header_id|>user<|end_header_id|>``).
    Templates whose roles are plain text are not told apart.
    """
    starts = list(_starts(ids, vocabulary))
    if not starts:
        return ()
    if starts[0][0] > 0:
        starts.insert(0, (0, Role.START))
    stops = [at for at, _ in starts[1:]] + [len(ids)]
    return tuple(Turn(role, at, stop) for (at, role), stop in zip(starts, stops, strict=True))


def turn_at(found: Sequence[Turn], index: int) -> Turn | None:
    """Return the turn that an index lies in, the last one for an index behind all."""
    at = bisect_right([turn.start for turn in found], index) - 1
    return found[at] if at >= 0 else None


def _starts(ids: Sequence[int], vocabulary: Vocabulary) -> Iterator[tuple[int, Role]]:
    places: dict[int, list[int]] = {}
    for at, token_id in enumerate(ids):
        if token_id in vocabulary.special:
            places.setdefault(token_id, []).append(at)
    found: list[tuple[int, Role]] = []
    for token_id, ats in places.items():
        marker = vocabulary.text((token_id,)).lower()
        if _closes(marker) or (token_id == vocabulary.bos and len(ats) == 1):
            continue
        named = _named(marker)
        roles = [named or _behind(ids, at, places, vocabulary) for at in ats]
        told = [role for role in roles if role is not None]
        # Behind a marker that opens turns other roles stand each time; behind another one's it is chance.
        if 2 * len(told) >= len(roles) or len(set(told)) > 1:
            found += [(at, role) for at, role in zip(ats, roles, strict=True) if role]
    yield from sorted(found)


def _closes(marker: str) -> bool:
    return "/" in marker or not _CLOSING.isdisjoint(re.findall("[a-z]+", marker))


def _named(marker: str) -> Role | None:
    words = _WORD.findall(marker)
    parts = [part for word in words for part in word.split("_")]
    return next((_ROLES[word] for word in [*words, *parts] if word in _ROLES), None)


def _behind(ids: Sequence[int], at: int, markers: Container[int], vocabulary: Vocabulary) -> Role | None:
    stop = at + 1
    while stop < len(ids) and stop <= at + NAME_TOKENS and ids[stop] not in markers:
        stop += 1
    name = _BEHIND.match(vocabulary.text(ids[at + 1 : stop]))
    return _ROLES.get(name[1].lower()) if name else None
