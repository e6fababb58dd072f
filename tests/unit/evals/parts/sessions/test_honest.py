from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from evals.parts.sessions.honest import HonestSessions
from logprob_drift.floor import as_served, floor_of
from probes.sessions import candidate_prompts
from ringtrue.endpoint import LogprobRow
from tests.unit.evals.tiny import NOISE, SIZE, TinyReference, log_softmax, logits_of


@dataclass
class Uneven(TinyReference):
    """An honest server whose arithmetic is noisier after some prompts; it remembers what it was asked."""

    steady: set[tuple[int, ...]] = field(default_factory=set)
    drawn: list[tuple[tuple[int, ...], int]] = field(default_factory=list)

    async def jittered(self, ids: list[tuple[int, ...]], *, dtype: str, seed: int) -> list[LogprobRow]:
        self.drawn += [(one, seed) for one in ids]
        rng = np.random.default_rng(seed)
        rows = []
        for one in ids:
            loudness = 1.0 if one in self.steady else rng.lognormal(0, 1)
            rows.append(log_softmax(logits_of(one) + NOISE * loudness * rng.standard_normal(SIZE)))
        return rows


def draws(reference: TinyReference, *, sessions: int = 40, k: int = 20, seed: int = 0) -> HonestSessions:
    candidates = candidate_prompts(reference, 8, seed=0)
    return HonestSessions(
        reference, candidates, count=2, sessions=sessions, dtype="bf16", k=k, seed=seed, cache=None
    )


async def test_the_prompts_with_the_steadiest_honest_answers_are_chosen() -> None:
    candidates = candidate_prompts(TinyReference(), 8, seed=0)
    steady = [candidates[1], candidates[6]]
    reference = Uneven(steady={TinyReference().render(prompt.messages) for prompt in steady})
    honest = await draws(reference).drawn()
    assert list(honest.prompts) == steady


async def test_sessions_are_whole_and_drawn_with_seeds_of_their_own() -> None:
    reference = Uneven()
    honest = await draws(reference, sessions=200).drawn()
    assert honest.divergences.shape == (200, 2, 4)
    assert (honest.divergences > 0).all()
    assert len({seed for _, seed in reference.drawn}) > 4
    assert len(np.unique(honest.at(20), axis=0)) == 200


async def test_every_k_an_endpoint_may_give_has_its_own_statistic() -> None:
    reference = Uneven()
    honest = await draws(reference).drawn()
    assert honest.ks == (20, 10, 5, 1)
    assert (await draws(Uneven(), k=7).drawn()).ks == (7, 5, 1)
    # On fewer cells the divergence is a lower bound of the one on more.
    assert (honest.at(5) <= honest.at(20) + 1e-9).all()


async def test_the_statistic_is_that_of_the_endpoints_answers() -> None:
    @dataclass
    class Fixed(TinyReference):
        async def jittered(self, ids: list[tuple[int, ...]], *, dtype: str, seed: int) -> list[LogprobRow]:
            return [log_softmax(1.05 * logits_of(one)) for one in ids]

    honest = await draws(Fixed(), sessions=3).drawn()
    for index, prompt in enumerate(honest.prompts):
        ids = TinyReference().render(prompt.messages)
        row, served = log_softmax(logits_of(ids)), as_served(log_softmax(1.05 * logits_of(ids)), 20)
        assert honest.at(20)[:, index] == pytest.approx(floor_of(row, served, 20), rel=1e-4)


async def test_a_draw_is_made_once_whoever_asks() -> None:
    reference = Uneven()
    honest = draws(reference)
    first, second = await honest.drawn(), await honest.drawn()
    assert first is second
    assert draws(Uneven()).key == honest.key
    assert draws(Uneven(), seed=1).key != honest.key
