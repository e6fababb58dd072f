"""Scores of every position, against a plain forward pass."""

from pathlib import Path

import numpy as np
import pytest
import torch

from reference_engine import position_scoring
from reference_engine.position_scores import PositionScores
from reference_engine.position_scoring import token_logprobs
from reference_engine.scoring import hidden_states
from ringtrue.errors import UsageError

IDS = tuple((7 * i) % 250 for i in range(61))


@pytest.fixture(scope="module")
def model(small_engine, small_model: Path):
    return small_engine.load(str(small_model))


@pytest.fixture(scope="module")
def expected(model):
    with torch.inference_mode():
        return torch.log_softmax(model.network(torch.tensor([IDS])).logits[0], dim=-1)[:-1]


async def _scores(engine, model, **options):
    options = {"k": 5, "states": False, "rows_per_block": 16} | options
    return [block async for block in engine.position_scores(model, IDS, **options)]


async def test_every_score_agrees_with_a_plain_pass(small_engine, model, expected):
    scores = PositionScores.joined(await _scores(small_engine, model))
    here = torch.arange(len(IDS) - 1)
    chosen = expected[here, torch.tensor(IDS[1:])]
    exact = expected.double()
    assert np.allclose(scores.logprobs, chosen.numpy(), atol=1e-5)
    assert np.array_equal(scores.ranks, (expected > chosen[:, None]).sum(1).numpy() + 1)
    assert np.allclose(scores.top_logprobs, expected.topk(5, dim=1).values.numpy(), atol=1e-5)
    assert np.allclose(scores.entropy, -(exact.exp() * exact).sum(1).numpy(), rtol=1e-5)
    assert np.allclose(scores.tail_mass, 1 - np.exp(scores.top_logprobs).sum(1), atol=1e-5)


async def test_blocks_have_the_asked_height_and_cover_every_position_once(small_engine, model):
    blocks = await _scores(small_engine, model, rows_per_block=16)
    assert [len(block) for block in blocks] == [16, 16, 16, 12]


async def test_the_whole_vocabulary_leaves_no_tail(small_engine, model, expected):
    scores = PositionScores.joined(await _scores(small_engine, model, k=model.vocabulary_size))
    assert np.all(scores.tail_mass == 0.0)
    assert np.all(np.sort(scores.top_ids, axis=1) == np.arange(model.vocabulary_size))
    assert np.all(np.diff(scores.top_logprobs, axis=1) <= 0)


async def test_states_give_the_distribution_again(small_engine, model, expected):
    scores = PositionScores.joined(await _scores(small_engine, model, states=True))
    with torch.inference_mode():
        again = torch.log_softmax(model.head(torch.tensor(scores.states)), dim=-1)
    assert np.allclose(again.numpy(), expected.numpy(), atol=1e-5)


async def test_ties_are_listed_by_lower_id(small_engine, small_model, model, monkeypatch):
    flat = torch.zeros(len(IDS), 9)
    flat[:, 4] = 1.0
    best = position_scoring._best(flat, 4)
    assert best.tolist() == [[4, 0, 1, 2]] * len(IDS)


@pytest.mark.parametrize("k", [0, 10_000])
async def test_a_k_that_the_vocabulary_does_not_have_is_refused(small_engine, model, k):
    with pytest.raises(UsageError, match=f"k is {k}, it can be 1 to {model.vocabulary_size}"):
        await _scores(small_engine, model, k=k)


def test_logprobs_alone_equal_a_plain_pass_exactly(model, expected):
    with torch.inference_mode():
        found = token_logprobs(model, IDS, hidden_states(model, torch.tensor([IDS])))
    assert found.shape == (len(IDS) - 1,)
    assert np.allclose(found, expected[torch.arange(len(IDS) - 1), torch.tensor(IDS[1:])], atol=1e-6)


def test_tiles_and_blocks_change_nothing_but_rounding(model, expected, monkeypatch):
    monkeypatch.setattr(position_scoring, "TILE_ELEMENTS", 7 * model.vocabulary_size)
    monkeypatch.setattr(position_scoring, "_BLOCK_ELEMENTS", 3 * model.vocabulary_size)
    with torch.inference_mode():
        found = token_logprobs(model, IDS, hidden_states(model, torch.tensor([IDS])))
    assert np.allclose(found, expected[torch.arange(len(IDS) - 1), torch.tensor(IDS[1:])], atol=1e-5)
