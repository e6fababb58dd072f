"""What one chat's comparison came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from evals.tokens.own import ByTemplate, Ids, Own
from probes.prompt_ids import Shown, best, invariants
from ringtrue.report import counted
from tokenizer_checks.alignment import nearest
from tokenizer_checks.blame import Blame, blame
from tokenizer_checks.difference import Difference, difference
from tokenizer_checks.metamorphic import Relation
from tokenizer_checks.side_by_side import printable
from tokenizer_checks.vocabulary import Vocabulary


class Match(StrEnum):
    """How the IDs that a server showed compare with the right ones."""

    EQUAL = "equal"
    DIFFERS = "differs"
    COUNT_FITS = "count fits"  # only a count was shown: consistent, and no proof
    COUNT_DIFFERS = "count differs"
    REFUSED = "refused"  # the model's own template refuses the chat: nothing to compare with
    UNSHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One chat: what should be, what was shown, and how they compare.

    ``way`` is the route that ``ids`` or ``count`` came by; ``used`` is false
    where that route only says what it would use. ``expected`` are the right
    IDs that are nearest to the used ones. ``relations`` are those within the
    chat: its routes agree, its count is its length.
    """

    name: str
    match: Match
    expected: Ids | None = None
    ids: Ids | None = None
    count: int | None = None
    way: str | None = None
    used: bool | None = None
    difference: Difference | None = None
    blame: Blame | None = None
    note: str = ""
    relations: tuple[Relation, ...] = ()

    @property
    def seen(self) -> Ids | int | None:
        """The IDs that were shown, else the count, else nothing."""
        return self.count if self.ids is None else self.ids


def judge_chat(name: str, shown: Sequence[Shown], own: Own, vocabulary: Vocabulary) -> Outcome:
    """Return what one chat's comparison came to."""
    told = best(shown)
    if told is None or (told.ids is None and told.count is None):
        return Outcome(name, Match.UNSHOWN, note=why_unshown(shown))
    seen = Outcome(
        name,
        Match.REFUSED,
        ids=told.ids,
        count=told.count,
        way=told.way,
        used=told.used,
        relations=invariants(shown),
    )
    return _held_against(seen, own, vocabulary)


def why_unshown(shown: Sequence[Shown]) -> str:
    """Return why the dialect's best way showed nothing, and how many others did not either.

    Servers write what they like: what is no text, or would act on a terminal, is spelt out.
    """
    problems = [one.problem for one in shown if one.problem]
    if not problems:
        return "nothing was shown"
    others = len(problems) - 1
    first = printable(problems[0])
    return first if not others else f"{first} ({counted(others, 'other way')} in vain)"


def _held_against(seen: Outcome, own: Own, vocabulary: Vocabulary) -> Outcome:
    if not own.right:
        # Our own template refuses, or the other server was silent: neither is this server's.
        match = Match.REFUSED if isinstance(own, ByTemplate) else Match.UNSHOWN
        return replace(seen, match=match, note=printable(own.refusal or ""))
    if seen.ids is None:
        fits = any(len(ids) == seen.count for ids in own.right)
        match = Match.COUNT_FITS if fits else Match.COUNT_DIFFERS
        return replace(seen, match=match, expected=own.right[0])
    expected = nearest(own.right, seen.ids)
    found = difference(expected, seen.ids, vocabulary)
    if found is None:
        return replace(seen, match=Match.EQUAL, expected=expected)
    told = blame(found, vocabulary, own.faults(seen.ids))
    return replace(seen, match=Match.DIFFERS, expected=expected, difference=found, blame=told)
