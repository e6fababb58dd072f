"""Every fault a replica can have is visible where it should be, and only there."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx
import numpy as np
import pytest

from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.errors import ModelError

MODEL = "smollm2"
MESSAGES = [{"role": "user", "content": "Name a colour. " * 8}]


@asynccontextmanager
async def _client(engine, faults=Faults(), model="smollm2-135m", **options):  # noqa: B008  # frozen
    app = create_app(engine, Replica(MODEL, model, faults=faults), **options)
    async with serve_app(app) as url, httpx.AsyncClient(base_url=url, timeout=300) as client:
        yield client


async def _ask(client, headers=None, **fields):
    body = {
        "model": MODEL,
        "messages": MESSAGES,
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 5,
        "return_token_ids": True,
    }
    response = await client.post("/v1/chat/completions", json=body | fields, headers=headers)
    assert response.status_code == 200
    return response.json()


def _top(data):
    (entry,) = data["choices"][0]["logprobs"]["content"]
    return [top["logprob"] for top in entry["top_logprobs"]]


async def _expected_top(reference, ids):
    row = await reference.next_token(ids)
    return sorted(row.tolist(), reverse=True)[:5]


async def test_an_honest_replica_uses_the_reference_s_ids_and_logprobs(engine, reference):
    async with _client(engine) as client:
        data = await _ask(client)
    ids = reference.render(MESSAGES)
    assert tuple(data["prompt_token_ids"]) == ids
    assert _top(data) == pytest.approx(await _expected_top(reference, ids), abs=2e-4)


@pytest.mark.parametrize(
    ("faults", "broken"),
    [
        (Faults(drop_generation_prompt=True), lambda ids: ids[:-4]),
        (Faults(double_bos=True), lambda ids: (1, *ids)),
        (Faults(drop_default_system=True), lambda ids: ids[ids.index(2) + 2 :]),
        (Faults(truncate_context=20), lambda ids: ids[-20:]),
    ],
)
async def test_a_fault_of_the_prompt_shows_in_the_ids_and_the_logprobs_follow(
    engine, reference, faults, broken
):
    expected = broken(reference.render(MESSAGES))
    async with _client(engine, faults) as client:
        data = await _ask(client)
        tokenized = (await client.post("/tokenize", json={"messages": MESSAGES})).json()
    assert tuple(data["prompt_token_ids"]) == expected
    assert data["usage"]["prompt_tokens"] == len(expected)
    assert _top(data) == pytest.approx(await _expected_top(reference, expected), abs=2e-4)
    # The tokenizer's route goes through the template too, but not through the context window.
    assert (tuple(tokenized["tokens"]) == expected) == (faults.truncate_context is None)


async def test_a_truncating_replica_takes_prompts_beyond_its_context_and_still_promises_it(engine):
    long = [{"role": "user", "content": "a " * 8_200}]
    async with _client(engine, Faults(truncate_context=16)) as client:
        assert (await client.get("/v1/models")).json()["data"][0]["max_model_len"] == 8_192
        data = await _ask(client, messages=long)
    assert len(data["prompt_token_ids"]) == 16


@pytest.mark.parametrize(("border", "harmed"), [(10, True), (200, False)])
async def test_corruption_shows_in_logprobs_beyond_its_border_only(engine, reference, border, harmed):
    ids = reference.render(MESSAGES)
    async with _client(engine, Faults(corrupt_beyond=border)) as client:
        data = await _ask(client)
    assert tuple(data["prompt_token_ids"]) == ids
    off = np.abs(np.array(_top(data)) - await _expected_top(reference, ids)).max()
    assert (off > 0.1) == harmed


async def test_rounded_weights_show_in_logprobs_on_the_same_ids(engine, reference):
    ids = reference.render(MESSAGES)
    async with _client(engine, model="smollm2-135m@int3") as client:
        data = await _ask(client)
    assert tuple(data["prompt_token_ids"]) == ids
    assert np.abs(np.array(_top(data)) - await _expected_top(reference, ids)).max() > 0.1


async def test_latency_is_waited_before_the_answer(engine):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    async with _client(engine, Faults(latency_s=1.5), sleep=sleep) as client:
        await _ask(client)
    assert waited == [1.5]


@pytest.mark.parametrize("place", ["prompt_cache_key", "user", "x-session-id"])
async def test_a_share_of_sessions_meets_the_faults_each_always_alike(engine, reference, place):
    faults = Faults(double_bos=True, share=0.5)
    honest = reference.render(MESSAGES)
    async with _client(engine, faults) as client:
        for session in map(str, range(6)):
            named = {"headers": {place: session}} if place.startswith("x-") else {place: session}
            broken = faults.meets(session, seed=0)
            for _ in range(2):
                data = await _ask(client, **named)
                assert (tuple(data["prompt_token_ids"]) != honest) == broken
    assert {faults.meets(str(session), seed=0) for session in range(6)} == {True, False}


async def test_a_session_without_a_name_is_its_connection(engine):
    faults = Faults(double_bos=True, share=0.5)
    async with _client(engine, faults) as client:
        counts = {(await _ask(client))["usage"]["prompt_tokens"] for _ in range(4)}
    assert len(counts) == 1


async def test_healthy_sessions_get_the_unrounded_model(engine, reference):
    faults = Faults(share=0.5)
    met = next(s for s in map(str, range(99)) if faults.meets(s, seed=0))
    spared = next(s for s in map(str, range(99)) if not faults.meets(s, seed=0))
    expected = await _expected_top(reference, reference.render(MESSAGES))
    async with _client(engine, faults, model="smollm2-135m@int3") as client:
        healthy, faulty = await _ask(client, user=spared), await _ask(client, user=met)
    assert _top(healthy) == pytest.approx(expected, abs=2e-4)
    assert np.abs(np.array(_top(faulty)) - expected).max() > 0.1
    assert healthy["system_fingerprint"] == faulty["system_fingerprint"]


async def test_several_replicas_share_one_engine(engine):
    async with _client(engine) as honest, _client(engine, Faults(double_bos=True)) as doubled:
        first, second = await _ask(honest), await _ask(doubled)
    assert second["prompt_token_ids"] == [1, *first["prompt_token_ids"]]


def test_a_replica_of_a_model_that_does_not_exist_is_refused(engine):
    with pytest.raises(ModelError, match="int5"):
        create_app(engine, Replica(MODEL, "smollm2-135m@int5"))
