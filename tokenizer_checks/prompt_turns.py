"""A difference with the turns of both prompts, for the rules of blame to look at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizer_checks.difference import Difference
from tokenizer_checks.turns import Role, Turn, turn_at, turns
from tokenizer_checks.vocabulary import Vocabulary

_HEADER = re.compile(r"role|header", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PromptTurns:
    """The turns of the expected and of the used prompt.

    ``opened`` and ``used_opened`` are where the turn begins that the answer
    goes on, the prompts' ends where none is open.
    """

    found: Difference
    vocabulary: Vocabulary
    turns: tuple[Turn, ...]
    used_turns: tuple[Turn, ...]
    opened: int
    used_opened: int

    def turn(self, index: int) -> Turn | None:
        """Return the expected turn that an index lies in."""
        return turn_at(self.turns, index)

    def last_user(self) -> Turn | None:
        """Return the turn the prompt asks with."""
        return next((turn for turn in reversed(self.turns) if turn.role is Role.USER), None)


def prompt_turns(found: Difference, vocabulary: Vocabulary) -> PromptTurns:
    """Return a difference with its turns; takes time linear in both prompts."""
    mine, theirs = turns(found.expected, vocabulary), turns(found.used, vocabulary)
    opened = _opened(found.expected, mine, vocabulary)
    return PromptTurns(found, vocabulary, mine, theirs, opened, _opened(found.used, theirs, vocabulary))


def _opened(ids: Sequence[int], told: Sequence[Turn], vocabulary: Vocabulary) -> int:
    last = told[-1] if told else None
    if last is None or last.role is not Role.ASSISTANT:
        return len(ids)
    closing = {i for i in ids[last.start + 1 :] if i in vocabulary.ends}
    # A marker that ends the role's name may be known as an end too: nothing is closed by it.
    closed = any(not _HEADER.search(vocabulary.text((i,))) for i in closing)
    return len(ids) if closed else last.start
