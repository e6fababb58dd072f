"""All chats of one endpoint together: what they say, and which known fault explains them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from evals.tokens.outcome import Match, Outcome
from evals.tokens.own import Own
from evals.tokens.pairs import Related, relate, related_findings
from ringtrue.records import Finding, Party, Verdict
from ringtrue.verdict import conclude
from tokenizer_checks.agreement import Asked, agree
from tokenizer_checks.blame_findings import difference_findings, relation_finding
from tokenizer_checks.comparison import compare
from tokenizer_checks.findings import judge
from tokenizer_checks.metamorphic import Relation
from tokenizer_checks.vocabulary import Vocabulary

OWN = "the model's own"

_SEEN = (Match.EQUAL, Match.DIFFERS, Match.COUNT_FITS, Match.COUNT_DIFFERS)


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What IDs are held against, in words, and the tokenizer that gives their text, by its model's name."""

    own: str
    tokenizer: str
    vocabulary: Vocabulary


@dataclass(frozen=True, slots=True)
class Compared:
    """What ``ringtrue tokens diff`` found of one endpoint.

    ``explained`` are the known faults that give exactly the used IDs in every
    chat whose IDs were shown.
    """

    endpoint: str
    model: str
    yardstick: Yardstick
    outcomes: tuple[Outcome, ...]
    related: tuple[Related, ...]
    explained: tuple[str, ...]
    findings: tuple[Finding, ...]

    def verdicts(self, at: datetime) -> tuple[Verdict, ...]:
        """Return the verdicts of the findings, as of ``at``."""
        return conclude(self.endpoint, self.model, self.findings, previous={}, run="tokens diff", at=at)


def compared(
    endpoint: str,
    model: str,
    outcomes: Sequence[Outcome],
    owns: Mapping[str, Own],
    yardstick: Yardstick,
) -> Compared:
    """Return all that the outcomes say together; ``owns`` are the right IDs by the chat's name."""
    related = relate({one.name: one for one in outcomes}, yardstick.vocabulary)
    explained = _explained(outcomes, owns)
    findings = [
        *_differences(endpoint, outcomes, explained, yardstick.own),
        *_within(endpoint, outcomes),
        *related_findings(endpoint, related),
    ]
    return Compared(endpoint, model, yardstick, tuple(outcomes), related, explained, tuple(findings))


def _explained(outcomes: Sequence[Outcome], owns: Mapping[str, Own]) -> tuple[str, ...]:
    """Return the faults that a server with that fault, and no other, would show in these chats."""
    shown = [one for one in outcomes if one.ids is not None and one.match in (Match.EQUAL, Match.DIFFERS)]
    differing = [one for one in shown if one.blame is not None]
    if not differing:
        return ()
    named = set.intersection(*(set(one.blame.mutations) for one in differing if one.blame))
    equal = [one for one in shown if one.match is Match.EQUAL and one.ids is not None]
    for one in equal if named else ():
        faults = owns[one.name].faults(one.ids or (), named)
        named = {name for name in named if faults.get(name, one.ids) == one.ids}
    return tuple(sorted(named))


def _differences(
    endpoint: str, outcomes: Sequence[Outcome], explained: tuple[str, ...], own: str
) -> list[Finding]:
    seen = [one for one in outcomes if one.match in _SEEN]
    counted = any(one.ids is None for one in seen)
    differing = {one.name: (one.difference, one.blame) for one in seen if one.difference and one.blame}
    found = list(difference_findings(endpoint, differing, chats=len(seen), counted=counted, own=own))
    by_counts = [one for one in seen if one.ids is None]
    if any(one.match is Match.COUNT_DIFFERS for one in by_counts):
        found += judge(endpoint, agree([_asked(one) for one in by_counts]), None, greedy_departs=None)
    if not found:
        alike = judge(endpoint, agree([_asked(one) for one in seen]), None, greedy_departs=None)
        refused = next((one.note for one in outcomes if one.match is Match.REFUSED), None)
        if not seen and refused is not None:
            words = f"the template that IDs are held against refuses every chat that was shown: {refused}"
            return [replace(one, message=words, party=Party.MODEL) for one in alike]
        return [replace(one, message=one.message.replace(OWN, own)) for one in alike]
    if explained:
        words = f"; in every chat the IDs are those of {' and of '.join(explained)}"
        evidence = {**found[0].evidence, "explained": list(explained)}
        found[0] = replace(found[0], message=found[0].message + words, evidence=evidence)
    return found


def _asked(one: Outcome) -> Asked:
    expected = one.expected or ()
    # A count that fits on another day, or in another spelling, fits.
    count = len(expected) if one.match is Match.COUNT_FITS else one.count
    return Asked(len(expected), compare(expected, one.ids, count))


def _within(endpoint: str, outcomes: Sequence[Outcome]) -> list[Finding]:
    """Return a finding for each relation that some chat breaks by itself: its routes, its count."""
    told: dict[str, dict[str, Relation]] = {}
    for one in outcomes:
        for relation in one.relations:
            before = told.setdefault(relation.name, {}).get(one.name)
            if relation.kept is not None and (before is None or before.kept):
                told[relation.name][one.name] = relation
    if any(relation.kept is False for relation in told.get("routes", {}).values()):
        told.pop("rendered", None)  # the same disagreement, told of another pair of routes
    findings = (_broken(endpoint, by_chat) for by_chat in told.values())
    return [finding for finding in findings if finding is not None]


def _broken(endpoint: str, by_chat: Mapping[str, Relation]) -> Finding | None:
    broken = {name: relation for name, relation in by_chat.items() if relation.kept is False}
    if not broken:
        return None
    name, first = next(iter(broken.items()))
    words = f"in {len(broken)} of {len(by_chat)} chats: {first.sentence} ({name})"
    finding = relation_finding(endpoint, replace(first, sentence=words), party=Party.PROVIDER)
    return replace(finding, n=len(by_chat))
