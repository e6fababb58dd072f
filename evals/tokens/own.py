"""What a prompt's token IDs should be: by the model's own template, or by another server."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from ringtrue.errors import ModelError
from tokenizer_checks.alignment import shared_head
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.model import ModelPrompts
from tokenizer_checks.templates.spellings import as_rendered

Ids = tuple[int, ...]

_DAYS = (timedelta(0), timedelta(days=-1), timedelta(days=1))


class Own(Protocol):
    """The IDs that one chat should have.

    ``right`` are all that are right, the usual ones first; none where ``refusal``
    says why there are none.
    """

    @property
    def right(self) -> tuple[Ids, ...]:
        """All IDs that are right."""

    @property
    def refusal(self) -> str | None:
        """Why there are none."""

    def faults(self, used: Ids, among: Collection[str] | None = None) -> Mapping[str, Ids]:
        """The IDs that known faults give, by the fault's name; of several those that equal ``used``.

        ``among`` names the faults to work out, ``None`` for all.
        """


class ByTemplate:
    """The IDs by a model's own template and tokenizer.

    Several are right where the template writes the date, since a server's
    time zone is not known and midnight passes, and where a chat is handed to
    the template in more than one way (`as_rendered`). Faults are worked out
    when asked for.
    """

    def __init__(self, prompts: ModelPrompts, chat: Chat, now: datetime) -> None:
        self._prompts = prompts
        self._ways = as_rendered(chat, prompts.template_of(chat))
        self._now = now
        self.right, self.refusal = self._rendered()

    def _rendered(self) -> tuple[tuple[Ids, ...], str | None]:
        found: list[Ids] = []
        refusals: list[str] = []
        for chat in self._ways:
            try:
                found += self._prompts.days(chat, self._now)
            except ModelError as error:
                refusals.append(str(error))
        return tuple(dict.fromkeys(found)), None if found else refusals[0]

    def faults(self, used: Ids, among: Collection[str] | None = None) -> Mapping[str, Ids]:
        """As `Own`."""
        merged: dict[str, Ids] = {}
        for name, ids in self._all_faults(among):
            if name not in merged or ids == used:
                merged[name] = ids
        return merged

    def _all_faults(self, among: Collection[str] | None) -> Iterator[tuple[str, Ids]]:
        for chat in self._ways:
            try:
                dated = len(self._prompts.days(chat, self._now)) > 1
                for by in _DAYS if dated else _DAYS[:1]:
                    yield from self._prompts.faults(chat, self._now + by, among).items()
            except ModelError:
                continue  # this way of writing the chat is refused, and another one is not


class ByServer:
    """The IDs that another server used: no fault is known there, only a difference."""

    def __init__(self, ids: Ids | None, problem: str | None = None) -> None:
        self.right: tuple[Ids, ...] = () if ids is None else (ids,)
        self.refusal = None if ids is not None else problem or "the other server showed no IDs"

    def faults(self, used: Ids, among: Collection[str] | None = None) -> Mapping[str, Ids]:  # noqa: ARG002 - the protocol's
        """As `Own`: none."""
        return {}


def nearest(own: Own, used: Ids) -> Ids:
    """Return the right IDs that ``used`` ones are to be held against: equal ones, else the most alike.

    A date that is right by the server's calendar is then not blamed for a fault beside it.

    Raises:
        ValueError: none are right.
    """
    return used if used in own.right else max(own.right, key=lambda ids: _alike(ids, used))


def _alike(one: Ids, other: Ids) -> int:
    return shared_head(one, other) + shared_head(one[::-1], other[::-1])
