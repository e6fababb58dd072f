"""What a prompt's token IDs should be: by the model's own template, or by another server."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Protocol

from ringtrue.errors import ModelError
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.model import ModelPrompts, near_days
from tokenizer_checks.templates.spellings import as_rendered

Ids = tuple[int, ...]


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
        self._now = now
        self._rendered: list[tuple[Chat, tuple[Ids, ...]]] = []
        refusals: list[str] = []
        for way in as_rendered(chat, prompts.template_of(chat)):
            try:
                self._rendered.append((way, prompts.days(way, now)))
            except ModelError as error:
                refusals.append(str(error))
        self.right = tuple(dict.fromkeys(ids for _, days in self._rendered for ids in days))
        self.refusal = None if self._rendered else refusals[0]

    def faults(self, used: Ids, among: Collection[str] | None = None) -> Mapping[str, Ids]:
        """As `Own`."""
        merged: dict[str, Ids] = {}
        for name, ids in self._all_faults(among):
            if name not in merged or ids == used:
                merged[name] = ids
        return merged

    def _all_faults(self, among: Collection[str] | None) -> Iterator[tuple[str, Ids]]:
        for way, days in self._rendered:
            for day in near_days(self._now) if len(days) > 1 else (self._now,):
                yield from self._prompts.faults(way, day, among).items()


class ByServer:
    """The IDs that another server used: no fault is known there, only a difference."""

    def __init__(self, ids: Ids | None, problem: str | None = None) -> None:
        self.right: tuple[Ids, ...] = () if ids is None else (ids,)
        self.refusal = None if ids is not None else problem or "the other server showed no IDs"

    def faults(self, used: Ids, among: Collection[str] | None = None) -> Mapping[str, Ids]:  # noqa: ARG002 - the protocol's
        """As `Own`: none."""
        return {}
