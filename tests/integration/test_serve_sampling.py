"""Faults of sampling, over HTTP: the draws follow the faulty law, the reported logprobs stay the model's."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager

import httpx
import numpy as np
import pytest
from scipy.stats import chisquare

from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from tests.small_models import write_small_llama

IDS = list(range(40, 52))
TEMPERATURE = 0.1  # the model's weights are random: this makes its nearly flat distribution a peaked one
DRAWS = 600


@asynccontextmanager
async def _client(engine, model, **options):
    app = create_app(engine, Replica("it", str(model), **options), rng=random.Random(3))  # noqa: S311  # no secret
    async with serve_app(app) as url, httpx.AsyncClient(base_url=url, timeout=300) as client:
        yield client


async def _ask(client, prompts, **fields):
    body = {
        "model": "it",
        "prompt": prompts,
        "max_tokens": 1,
        "temperature": TEMPERATURE,
        "logprobs": 5,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }
    response = await client.post("/v1/completions", json=body | fields)
    assert response.status_code == 200
    return response.json()["choices"]


def _tokens(choices):
    return [choice["token_ids"][0] for choice in choices]


def _row(engine, model):
    return engine.start_score(engine.load(str(model)), IDS).result().astype(float)


def _law(row, temperature, kept):
    """The probabilities at ``temperature`` when only the tokens at the ranks ``kept`` may be drawn."""
    order = np.argsort(-row)[kept]
    weights = np.exp((row[order] - row.max()) / temperature)
    law = np.zeros(len(row))
    law[order] = weights / weights.sum()
    return law


def _fits(tokens, law):
    """The p-value of the draws under ``law``, its rare tokens in one cell."""
    counts = np.bincount(tokens, minlength=len(law))
    common = law * len(tokens) >= 5
    observed = [*counts[common], counts[~common].sum()]
    expected = [*law[common], law[~common].sum()]
    if expected[-1] == 0:
        assert observed.pop() == 0
        expected.pop()
    return chisquare(observed, np.array(expected) * len(tokens)).pvalue


@pytest.mark.parametrize(
    ("faults", "temperature", "kept"),
    [
        (Faults(), TEMPERATURE, slice(None)),
        (Faults(temperature_factor=2.0), 2 * TEMPERATURE, slice(None)),
        (Faults(drop_top_token=True), TEMPERATURE, slice(1, None)),
        (Faults(top_k=4), TEMPERATURE, slice(0, 4)),
        (Faults(top_k=4, drop_top_token=True), TEMPERATURE, slice(1, 5)),
        (Faults(ignore_temperature=True), TEMPERATURE, slice(0, 1)),
    ],
)
async def test_the_draws_follow_the_faulty_law_alone(small_engine, small_model, faults, temperature, kept):
    row = _row(small_engine, small_model)
    async with _client(small_engine, small_model, faults=faults) as client:
        tokens = _tokens(await _ask(client, [IDS] * DRAWS))
    law = _law(row, temperature, kept)
    assert law[tokens].min() > 0
    if law.max() < 1:
        assert _fits(tokens, law) > 0.01
        honest = _law(row, TEMPERATURE, slice(None))
        assert faults == Faults() or _fits(tokens, honest) < 1e-6


@pytest.mark.parametrize(
    "faults",
    [
        Faults(temperature_factor=2.0),
        Faults(drop_top_token=True),
        Faults(top_k=1),
        Faults(ignore_temperature=True),
    ],
)
async def test_the_reported_logprobs_are_the_honest_server_s(small_engine, small_model, faults):
    row = _row(small_engine, small_model)
    async with _client(small_engine, small_model, faults=faults) as client:
        (choice,) = await _ask(client, IDS, seed=5)
    reported = {int(key.split(":")[1]): value for key, value in choice["logprobs"]["top_logprobs"][0].items()}
    best = np.argsort(-row)[:5].tolist()
    assert set(best) <= set(reported)
    for token_id, value in reported.items():
        assert value == pytest.approx(row[token_id], abs=2e-4)


async def test_a_seed_that_was_sent_is_ignored(small_engine, small_model):
    async with _client(small_engine, small_model) as client:
        honest = _tokens(await _ask(client, [IDS] * 20, seed=5, temperature=1))
    async with _client(small_engine, small_model, faults=Faults(ignore_seed=True)) as client:
        faulty = _tokens(await _ask(client, [IDS] * 20, seed=5, temperature=1))
    assert len(set(honest)) == 1
    assert len(set(faulty)) > 10


async def test_a_bias_on_the_tokens_that_end_an_answer_moves_its_length(small_engine, small_model):
    async def mean_length(bias):
        async with _client(small_engine, small_model, faults=Faults(end_bias=bias)) as client:
            choices = await _ask(client, [IDS] * 20, max_tokens=60, temperature=1)
        return np.mean([len(choice["token_ids"]) for choice in choices])

    # The small model ends one answer in hundreds of tokens by itself: e to the 4th as often is soon.
    sooner, soonest = await mean_length(4.0), await mean_length(7.0)
    assert soonest < 0.7 * sooner < 0.7 * 60


async def test_two_checkpoints_behind_one_name_and_a_session_always_gets_one(
    small_engine, small_model, tmp_path
):
    write_small_llama(tmp_path)
    honest = f"{tmp_path}@tuned:noise=0.5"  # another base and other weights, with the same tokenizer
    faults = Faults(share=0.5)
    rows = {False: _row(small_engine, honest), True: _row(small_engine, small_model)}
    async with _client(small_engine, small_model, faults=faults, healthy=honest) as client:
        met = set()
        for session in map(str, range(8)):
            (choice,) = await _ask(client, IDS, temperature=0, user=session)
            broken = faults.meets(session, seed=0)
            assert choice["token_ids"] == [int(rows[broken].argmax())]
            assert choice["logprobs"]["token_logprobs"] == pytest.approx([rows[broken].max()], abs=2e-4)
            met.add(broken)
    assert met == {True, False}
    assert rows[True].argmax() != rows[False].argmax()


async def test_sessions_that_meet_no_fault_get_the_unchanged_model(small_engine, small_model):
    faults = Faults(share=0.5, drop_top_token=True)
    spared = next(s for s in map(str, range(99)) if not faults.meets(s, seed=0))
    row = _row(small_engine, small_model)
    model = f"{small_model}@rope:base=333+tuned:noise=0.5+int4"
    async with _client(small_engine, model, faults=faults) as client:
        (choice,) = await _ask(client, IDS, temperature=1e-6, user=spared)
    assert choice["token_ids"] == [int(row.argmax())]
    assert choice["logprobs"]["token_logprobs"] == pytest.approx([row.max()], abs=2e-4)
