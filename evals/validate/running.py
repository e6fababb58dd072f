"""Judging recordings, one exchange at a time, with what has to be known of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from ringtrue.records import FailureKind
from toolcall_validator.differences import Difference, difference
from toolcall_validator.fault import Fault
from toolcall_validator.judgement import Judgement, prompt_key
from toolcall_validator.metrics import Metrics
from toolcall_validator.tally import Tally
from toolcall_validator.validate import Validator, pair_faults

Identity: TypeAlias = str | int | float
"""The ``id`` of an exchange, as the recording has it."""

_NOT_ASKED = frozenset({FailureKind.BUDGET, FailureKind.CANCELLED})  # says nothing about the endpoint


@dataclass(frozen=True, slots=True)
class JudgedRecord:
    """One exchange: its ``id``, its endpoint (empty where none is named), and what it came to."""

    id: Identity
    endpoint: str
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class BrokenPair:
    """The streamed and the plain answer of an endpoint to one prompt, which differ in class."""

    endpoint: str
    plain: Identity
    streamed: Identity
    fault: Fault


@dataclass(slots=True)
class ReferenceCalls:
    """Whether the reference answers each prompt by a call: its first answer, and how later ones agree."""

    first: dict[str, bool] = field(default_factory=dict)
    again: list[tuple[str, bool, bool]] = field(default_factory=list)

    def add(self, prompt: str, judgement: Judgement) -> None:
        """Take note of one answer; one that had to call agrees with nothing."""
        first = self.first.get(prompt)
        if first is None:
            self.first[prompt] = judgement.called
        elif not judgement.due:
            self.again.append((prompt, first, judgement.called))


class Validation:
    """Judges exchanges in their order; of each it keeps a class and counts, and nothing that was said.

    The two answers to one prompt, streamed and plain, of one named endpoint and
    model are a pair; where they differ in class it is among the ``broken_pairs``. What
    names no endpoint may come from several, and has no pairs.
    """

    def __init__(self, reference: Iterable[Mapping[str, Any]] = ()) -> None:
        self._validator = Validator()
        self._tallies: dict[str, Tally] = {}
        self._halves: dict[tuple[str, str, str], tuple[bool, str, Identity]] = {}
        self.broken_pairs: list[BrokenPair] = []
        self._reference = ReferenceCalls()
        for record in reference:
            judgement = self._validator.judge(record)
            if judgement.scored:
                self._reference.add(prompt_key(record), judgement)

    def judge(self, records: Iterable[Mapping[str, Any]]) -> Iterator[JudgedRecord]:
        """Judge each exchange as it is read."""
        for record in records:
            endpoint = _text(record.get("endpoint"))
            judgement = self._validator.judge(record)
            prompt = prompt_key(record)
            if endpoint and judgement.scored:
                key = endpoint, _text(record["request"].get("model")), prompt
                self._pair_up(key, record["id"], judgement)
            self._tally(endpoint).add(
                prompt,
                judgement,
                first_attempt=_first_attempt(record, judgement),
                reference_called=self._reference.first.get(prompt),
            )
            yield JudgedRecord(record["id"], endpoint, judgement)

    def metrics(self) -> dict[str, Metrics]:
        """Return the metrics by endpoint, in the order of appearance."""
        found = {endpoint: tally.metrics() for endpoint, tally in self._tallies.items()}
        return {name: one if name else replace(one, parity=None) for name, one in found.items()}

    def differences(self, seed: int = 0) -> dict[tuple[str, str], Difference]:
        """Return how each later endpoint differs from the first one in valid answers."""
        first, *others = self._tallies or [""]
        rng = np.random.default_rng(seed)
        found = {(name, first): difference(self._tallies[name], self._tallies[first], rng) for name in others}
        return {pair: apart for pair, apart in found.items() if apart is not None}

    def _tally(self, endpoint: str) -> Tally:
        if endpoint not in self._tallies:
            self._tallies[endpoint] = Tally()
            for prompt, first, again in self._reference.again:
                self._tallies[endpoint].add_rerun(prompt, first=first, again=again)
        return self._tallies[endpoint]

    def _pair_up(self, key: tuple[str, str, str], record: Identity, judgement: Judgement) -> None:
        """Compare an answer with the one that waits for it, or let it wait."""
        half = (judgement.streamed, judgement.outcome, record)
        other = self._halves.pop(key, None)
        if other is None or other[0] is judgement.streamed:
            self._halves[key] = half
            return
        (_, plain, plain_id), (_, streamed, streamed_id) = sorted((other, half))
        for found in pair_faults(plain, streamed):
            self.broken_pairs.append(BrokenPair(key[0], plain_id, streamed_id, found))


def _first_attempt(record: Mapping[str, Any], judgement: Judgement) -> bool | None:
    """Return whether the first attempt was answered; ``None`` where the endpoint was not asked.

    A recording that names no attempts holds one of each request.
    """
    error = record.get("error")
    if isinstance(error, dict) and error.get("kind") in _NOT_ASKED:
        return None
    attempts = record.get("attempts")
    if isinstance(attempts, list) and attempts and isinstance(attempts[0], dict):
        return attempts[0].get("failure") is None
    return not error and judgement.answered


def _text(value: object) -> str:
    """Return a name that can be printed, empty where there is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
