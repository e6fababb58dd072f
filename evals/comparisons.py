"""All answers of one endpoint beside the reference: on equal token IDs, and the harm where they differ."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evals.answers import Answered, against, row_of
from evals.curve_numbers import Measured, Scribe
from evals.truth import Truth
from logprob_drift.alignment import Defect
from logprob_drift.divergence import Divergence
from logprob_drift.night import FEW_NEED, POOL_NEEDS, beyond_tolerance
from ringtrue.endpoint import LogprobRow
from ringtrue.records import Observation
from tokenizer_checks.agreement import Agreement, Asked, agree
from tokenizer_checks.comparison import Kind
from tokenizer_checks.findings import Harm

Emit = Callable[[Sequence[Observation]], Awaitable[None]]
Compared = tuple[LogprobRow, Divergence]
"""A reference row (shape [vocabulary], nats) and an answer's divergence from it."""

_OWN_TOKENS = 16_384  # of other IDs than expected, on which the reference is asked again: bounds its cost
_DEPARTS = 0.5  # share of equal first choices below which greedy text is another one


@dataclass(frozen=True, slots=True)
class Comparisons:
    """What the answers show.

    ``measured`` are the prompts compared on the same token IDs: the expected
    ones, or with ``own_ids`` those that the server used instead. ``withheld``
    prompts had other IDs and were left out. ``harm`` is the divergence on the
    expected IDs where the server used others.
    """

    agreement: Agreement
    measured: tuple[Measured, ...] = ()
    own_ids: bool = False
    withheld: int = 0
    harm: Harm | None = None
    greedy_departs: bool | None = None
    defects: Counter[Defect] = field(default_factory=Counter)
    silent: int = 0  # answers without any logprobs


async def compare_answers(
    answers: Sequence[Answered], compared: Mapping[str, Compared], truth: Truth, rng: np.random.Generator
) -> Comparisons:
    """Put all answers together; ask the reference again where the server used other IDs.

    ``compared`` holds, by prompt, what `compare` gave for the comparable answers.
    """
    answered = [answer for answer in answers if answer.exchange.error is None]
    agreement = agree([Asked(answer.prompt.bucket, answer.comparison) for answer in answered])
    same = [answer for answer in answered if answer.comparable]
    other = [answer for answer in answered if answer.usable and answer.comparison.same is False]
    # Right, but for a date that is another one where the server stands: only its own IDs can be used.
    other_day = [answer for answer in answered if answer.usable and answer.comparison.kind is Kind.OTHER_DAY]
    measured = await _beside_floor(same, compared, truth)
    harms = await _on_expected_ids(other, truth)
    own: tuple[Measured, ...] = ()
    if len(same) < POOL_NEEDS:
        own = await _on_own_ids(other_day or other, truth)
    own_ids = len(own) > len(measured)
    defects = [answer.aligned for answer in answered if isinstance(answer.aligned, Defect)]
    return Comparisons(
        agreement=agreement,
        measured=own if own_ids else measured,
        own_ids=own_ids,
        withheld=len(other) + len(other_day) - (len(own) if own_ids else 0),
        harm=_harm(harms, rng),
        greedy_departs=_departs(harms),
        defects=Counter(defects),
        silent=sum(answer.aligned is None for answer in answered),
    )


async def compare(answer: Answered, truth: Truth, scribe: Scribe, emit: Emit) -> Compared:
    """Compare one comparable answer with the reference and hand its numbers on at once."""
    reference = await truth.row(answer.prompt)
    divergence = against(answer, reference)
    await emit(scribe.of_prompt(answer, divergence))
    return reference, divergence


async def _beside_floor(
    same: Sequence[Answered], compared: Mapping[str, Compared], truth: Truth
) -> tuple[Measured, ...]:
    floors = await truth.floors() if same else {}
    measured = []
    for answer in same:
        reference, divergence = compared[answer.prompt.id]
        row = row_of(answer, divergence, reference, floors[answer.prompt.id])
        measured.append(Measured(answer, divergence, row))
    return tuple(measured)


async def _on_expected_ids(other: Sequence[Answered], truth: Truth) -> list[Divergence]:
    rows = await asyncio.gather(*(truth.row(answer.prompt) for answer in other))
    return [against(answer, row) for answer, row in zip(other, rows, strict=True)]


async def _on_own_ids(other: Sequence[Answered], truth: Truth) -> tuple[Measured, ...]:
    """Compare on the IDs that the server used: the shortest prompts, as many as a verdict needs."""
    shown = [answer for answer in other if answer.exchange.prompt_token_ids is not None]
    shown.sort(key=lambda answer: len(answer.exchange.prompt_token_ids or ()))
    chosen: list[Answered] = []
    tokens = 0
    for answer in shown[:POOL_NEEDS]:
        tokens += len(answer.exchange.prompt_token_ids or ())
        if tokens > _OWN_TOKENS:
            break
        chosen.append(answer)
    sequences = [answer.exchange.prompt_token_ids or () for answer in chosen]
    if not sequences or _foreign(sequences, truth):
        return ()
    rows = await asyncio.gather(*(truth.reference.next_token(ids) for ids in sequences))
    honest = await truth.own_floors(sequences)
    measured = []
    for answer, row, floor in zip(chosen, rows, honest, strict=True):
        divergence = against(answer, row)
        measured.append(Measured(answer, divergence, row_of(answer, divergence, row, floor)))
    return tuple(measured)


def _foreign(sequences: Sequence[Sequence[int]], truth: Truth) -> bool:
    size = truth.reference.vocabulary_size
    return any(not ids or max(ids) >= size or min(ids) < 0 for ids in sequences)


def _harm(divergences: Sequence[Divergence], rng: np.random.Generator) -> Harm | None:
    if not divergences:
        return None
    d = np.array([divergence.kl for divergence in divergences])
    interval, beyond = beyond_tolerance(d, rng)
    return Harm(float(d.mean()), interval, len(divergences), beyond)


def _departs(divergences: Sequence[Divergence]) -> bool | None:
    if len(divergences) < FEW_NEED:
        return None
    return float(np.mean([divergence.top1 for divergence in divergences])) < _DEPARTS
