"""Relations between two chats: kept by the server, and by the model's own template?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evals.tokens.chats import MARKED, UNMARKED
from evals.tokens.outcome import Outcome
from ringtrue.records import Finding, Party
from tokenizer_checks.blame_findings import relation_finding
from tokenizer_checks.metamorphic import (
    Relation,
    generation_prompt_there,
    key_order_kept,
    literal_escaped,
    prefix_kept,
    tools_used,
    white_space_kept,
)
from tokenizer_checks.vocabulary import Vocabulary

Seen = Sequence[int] | int | None
Judge = Callable[[Seen, Seen, Vocabulary], Relation]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two chats by name, and what must hold between their IDs or counts."""

    first: str
    second: str
    judge: Judge


@dataclass(frozen=True, slots=True)
class Related:
    """One relation as the server keeps it, and as the model's own IDs do.

    ``own`` is ``None`` where nothing is known of the model's own.
    """

    first: str
    second: str
    of_server: Relation
    own: Relation | None

    @property
    def broken(self) -> bool:
        """Whether the server or the model's own IDs break the relation."""
        return self.of_server.kept is False or (self.own is not None and self.own.kept is False)

    @property
    def party(self) -> Party:
        """Who has to act if the server breaks the relation, or keeps it otherwise than the model's own."""
        if self.own is None or self.own.kept is None:
            return Party.UNKNOWN
        same = self.own.kept == self.of_server.kept
        return Party.MODEL if same and not self.own.kept else Party.PROVIDER

    @property
    def odd(self) -> Relation:
        """The relation with what stands against it: broken too where only the server keeps it."""
        told, own = self.of_server, self.own
        if own is None or told.kept is None or own.kept is None:
            return told
        if told.kept and not own.kept:
            return replace(
                told, kept=False, sentence=f"{told.sentence}; by the model's own template: {own.sentence}"
            )
        if not told.kept and own.kept:
            return replace(told, sentence=f"{told.sentence}; by the model's own template: {own.sentence}")
        return told if told.kept else replace(told, sentence=f"{told.sentence}, by the model's own template")


def _ids(seen: Seen) -> Sequence[int] | None:
    return None if isinstance(seen, int) else seen


PAIRS = (
    Pair("one_tool_without", "one_tool", lambda one, other, _: tools_used(one, other)),
    Pair(
        "tool_sorted_keys",
        "tool_unsorted_keys",
        lambda one, other, _: key_order_kept(_ids(one), _ids(other)),
    ),
    Pair("no_generation_prompt", "one_user", lambda one, other, _: generation_prompt_there(one, other)),
    Pair("no_generation_prompt", "two_turns", lambda one, other, _: prefix_kept(_ids(one), _ids(other))),
    Pair(
        "trailing_space_stripped",
        "trailing_space",
        lambda one, other, _: white_space_kept(one, other),
    ),
    Pair(UNMARKED, MARKED, lambda one, other, words: literal_escaped(_ids(one), _ids(other), words)),
)


def relate(outcomes: Mapping[str, Outcome], vocabulary: Vocabulary) -> tuple[Related, ...]:
    """Return the relations of which both chats were asked, told or not.

    Where server or model do not write tools at all, nothing is said of the order of their keys.
    """
    found = tuple(_relations(outcomes, vocabulary))
    written = not any(one.of_server.name == "tools" and one.broken for one in found)
    return tuple(one for one in found if written or one.of_server.name != "key_order")


def _relations(outcomes: Mapping[str, Outcome], vocabulary: Vocabulary) -> Iterator[Related]:
    for pair in PAIRS:
        first, second = outcomes.get(pair.first), outcomes.get(pair.second)
        if first is None or second is None:
            continue
        own = None
        if first.expected is not None and second.expected is not None:
            own = pair.judge(first.expected, second.expected, vocabulary)
        yield Related(pair.first, pair.second, pair.judge(first.seen, second.seen, vocabulary), own)


def related_findings(endpoint: str, related: Sequence[Related]) -> list[Finding]:
    """Return a finding for each relation that is broken, or kept otherwise than by the model's own."""
    found = []
    for one in related:
        if one.odd.kept is False:
            party = one.party
            # Where the model's own is not known, nobody is to blame, and nothing to be warned of.
            mild = party if party is Party.PROVIDER else Party.MODEL
            found.append(replace(relation_finding(endpoint, one.odd, party=mild), party=party))
    return found
