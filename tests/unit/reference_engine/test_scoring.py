"""The real model, against a plain transformers call on a copy of its own."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from reference_engine.models.embedded import embedded_file
from reference_engine.models.quiet import quiet_transformers
from reference_engine.scoring import next_token_logprobs

TOLERANCE = 2e-4  # nats, between float32 calls of different shape
TEXT = "The probe asks, the judge counts, and nobody guesses. def f(x): return x + 1\n" * 12


@pytest.fixture(scope="module")
def plain():
    """The same file, loaded by transformers alone."""
    file = embedded_file()
    with quiet_transformers():
        return AutoModelForCausalLM.from_pretrained(
            file.parent, gguf_file=file.name, dtype=torch.float32
        ).eval()


@pytest.fixture(scope="module")
def model(engine):
    return engine.load("smollm2-135m")


def _ids(reference, length):
    return reference.encode(TEXT)[:length]


def _next(plain, ids):
    with torch.inference_mode():
        logits = plain(torch.tensor([ids]), logits_to_keep=1).logits[:, -1]
    return torch.log_softmax(logits, dim=-1)[0].numpy()


@pytest.mark.parametrize("length", [1, 33, 200])
async def test_a_single_call_equals_a_plain_transformers_call_exactly(plain, reference, length):
    ids = _ids(reference, length)
    assert np.array_equal(await reference.next_token(ids), _next(plain, ids))


@pytest.mark.parametrize("length", [2, 90])
async def test_prompt_scores_equal_a_plain_transformers_call_exactly(plain, engine, model, reference, length):
    ids = _ids(reference, length)
    scores = await engine.score_prompt(model, ids, 5)
    with torch.inference_mode():
        expected = torch.log_softmax(plain(torch.tensor([ids])).logits[0], dim=-1)[:-1]
    chosen = expected[torch.arange(length - 1), torch.tensor(ids[1:])]
    top = expected.topk(5, dim=1)
    assert np.array_equal(scores.logprobs, chosen.numpy())
    assert np.array_equal(scores.ranks, (expected > chosen.unsqueeze(1)).sum(1).numpy() + 1)
    assert np.array_equal(scores.top_logprobs, top.values.numpy())
    assert np.array_equal(scores.top_ids, top.indices.numpy())


async def test_tiles_of_rows_do_not_change_prompt_scores(engine, model, reference, monkeypatch):
    ids = _ids(reference, 90)
    whole = await engine.score_prompt(model, ids, 3)
    monkeypatch.setattr("reference_engine.scoring._TILE_ELEMENTS", 16 * model.vocabulary_size)
    tiled = await engine.score_prompt(model, ids, 3)
    assert tiled.logprobs.shape == whole.logprobs.shape == (89,)
    assert np.abs(tiled.logprobs - whole.logprobs).max() <= TOLERANCE


async def test_a_prompt_of_one_token_has_no_scores(engine, model, reference):
    scores = await engine.score_prompt(model, _ids(reference, 1), 3)
    assert scores.logprobs.shape == (0,)
    assert scores.top_ids.shape == (0, 3)


def test_padded_batches_stay_within_the_tolerance(plain, engine, model, reference):
    sequences = [_ids(reference, length) for length in (3, 17, 60, 64)]
    rows = engine.call(lambda: next_token_logprobs(model, sequences)).result().numpy()
    for row, ids in zip(rows, sequences, strict=True):
        assert np.abs(row - _next(plain, ids)).max() <= TOLERANCE


def test_chunked_batches_stay_within_the_tolerance(plain, engine, model, reference):
    sequences = [_ids(reference, length) for length in (20, 70, 130)]
    rows = engine.start_batch(model, sequences, (33, 100)).result()
    for row, ids in zip(rows, sequences, strict=True):
        assert np.abs(row - _next(plain, ids)).max() <= TOLERANCE


def test_a_long_prefill_is_chunked_by_itself(plain, engine, model, reference, monkeypatch):
    monkeypatch.setattr("reference_engine.scoring._LONGEST_CHUNK", 40)
    ids = _ids(reference, 130)
    row = engine.start_score(model, ids).result()
    assert np.abs(row - _next(plain, ids)).max() <= TOLERANCE
    assert not np.array_equal(row, _next(plain, ids))  # the chunks were really taken
