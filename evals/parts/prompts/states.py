"""What a night keeps of each chat, so that a later one can tell whether its token IDs are still the same.

Each is an observation with the chat's label as its session.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evals.tokens.outcome import Match, Outcome
from tokenizer_checks.fingerprint import fingerprint
from tokenizer_checks.vocabulary import Vocabulary

IDS = "prompt_ids"
"""The fingerprint of the token IDs."""
DEPARTURE = "prompt_departure"
"""Tokens more than the model's own template gives; where that refuses the chat, tokens."""
OWN = "prompt_own"
"""1 where the IDs are the model's own, 0 where IDs or count are others; left out where nothing tells."""


@dataclass(frozen=True, slots=True)
class PromptState:
    """One number of one chat."""

    metric: str
    value: float
    unit: str


def states_of(
    outcome: Outcome, right: tuple[tuple[int, ...], ...], words: Vocabulary
) -> Iterator[PromptState]:
    """Yield what is kept of a chat of which a server showed IDs, or only a count, or nothing.

    ``right`` are all IDs that are right for it: a date may take another number
    of tokens tomorrow, and the departure is that from the nearest.
    """
    if outcome.ids is not None:
        yield PromptState(IDS, float(fingerprint(outcome.ids, words)), "hash")
    elif outcome.count is not None:
        departures = [outcome.count - len(ids) for ids in right] or [outcome.count]
        yield PromptState(DEPARTURE, float(min(departures, key=abs)), "tokens")
    if outcome.match is Match.EQUAL:
        yield PromptState(OWN, 1.0, "share")
    elif outcome.match in (Match.DIFFERS, Match.COUNT_DIFFERS):
        yield PromptState(OWN, 0.0, "share")
