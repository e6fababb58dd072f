"""``ringtrue serve`` over real HTTP: what clients of OpenAI and vLLM send, and what they expect back."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import httpx
import numpy as np
import pytest

from reference_engine.server.app import create_app
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.errors import UsageError
from ringtrue.secrets import Secret

MODEL = "smollm2"
MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]
LONG = {"role": "user", "content": "a " * 8_200}
ANSWER = "The capital of France is Paris."


@asynccontextmanager
async def _client(engine, *, key=None, **replica):
    app = create_app(engine, Replica(MODEL, "smollm2-135m", **replica), key=key, now=lambda: 1_700_000_000.0)
    async with serve_app(app) as url, httpx.AsyncClient(base_url=url, timeout=300) as client:
        yield client


@pytest.fixture
async def client(engine):
    async with _client(engine) as client:
        yield client


async def _chat(client, **fields):
    body = {"model": MODEL, "messages": MESSAGES, "temperature": 0, "max_tokens": 1} | fields
    return await client.post("/v1/chat/completions", json=body)


async def _complete(client, **fields):
    body = {"model": MODEL, "prompt": "The capital of France is", "temperature": 0, "max_tokens": 1} | fields
    return await client.post("/v1/completions", json=body)


def _events(response):
    lines = [line for line in response.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def test_the_server_says_it_is_up_and_what_it_serves(client):
    assert (await client.get("/health")).status_code == 200
    (model,) = (await client.get("/v1/models")).json()["data"]
    assert (model["id"], model["max_model_len"]) == (MODEL, 8_192)


async def test_a_chat_is_answered_with_usage_and_token_ids(client, reference):
    data = (await _chat(client, max_tokens=20, return_token_ids=True)).json()
    (choice,) = data["choices"]
    assert choice["message"] == {"role": "assistant", "content": ANSWER}
    assert choice["finish_reason"] == "stop"
    assert tuple(data["prompt_token_ids"]) == reference.render(MESSAGES)
    assert reference.decode(choice["token_ids"]) == ANSWER + "<|im_end|>"
    assert data["usage"] == {"prompt_tokens": 37, "completion_tokens": 8, "total_tokens": 45}
    assert (data["object"], data["created"], data["model"]) == ("chat.completion", 1_700_000_000, MODEL)


async def test_chat_logprobs_list_the_sampled_token_and_exactly_k_alternatives(client, reference):
    row = await reference.next_token(reference.render(MESSAGES))
    data = (await _chat(client, logprobs=True, top_logprobs=5)).json()
    (entry,) = data["choices"][0]["logprobs"]["content"]
    best = np.argsort(-row)[:5]
    assert [top["logprob"] for top in entry["top_logprobs"]] == row[best].tolist()
    assert [bytes(top["bytes"]) for top in entry["top_logprobs"]] == list(map(reference.token_bytes, best))
    assert (entry["token"], entry["logprob"], bytes(entry["bytes"])) == ("The", float(row.max()), b"The")


async def test_a_sampled_token_outside_the_top_k_is_its_own_entry_only(client):
    data = (await _chat(client, temperature=5, seed=1, logprobs=True, top_logprobs=2)).json()
    (entry,) = data["choices"][0]["logprobs"]["content"]
    assert len(entry["top_logprobs"]) == 2
    assert entry["logprob"] < min(top["logprob"] for top in entry["top_logprobs"])


async def test_tokens_can_be_named_by_id(client):
    data = (await _chat(client, logprobs=True, top_logprobs=1, return_tokens_as_token_ids=True)).json()
    (entry,) = data["choices"][0]["logprobs"]["content"]
    assert entry["token"] == entry["top_logprobs"][0]["token"] == "token_id:504"
    assert bytes(entry["bytes"]) == b"The"


async def test_a_streamed_chat_says_the_same_as_a_whole_one(client):
    options = {"max_tokens": 20, "logprobs": True, "top_logprobs": 2, "return_token_ids": True}
    whole = (await _chat(client, **options)).json()
    response = await _chat(client, **options, stream=True, stream_options={"include_usage": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    first, *chunks, last = _events(response)
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert first["prompt_token_ids"] == whole["prompt_token_ids"]
    assert last["choices"] == []
    assert last["usage"] == whole["usage"]
    deltas = [chunk["choices"][0] for chunk in chunks]
    assert "".join(delta["delta"]["content"] for delta in deltas) == ANSWER
    assert [t for delta in deltas for t in delta["token_ids"]] == whole["choices"][0]["token_ids"]
    assert [e for d in deltas for e in d["logprobs"]["content"]] == whole["choices"][0]["logprobs"]["content"]
    assert [delta["finish_reason"] for delta in deltas] == [None] * 7 + ["stop"]


async def test_a_stream_without_include_usage_has_none(client):
    assert all("usage" not in event for event in _events(await _chat(client, stream=True)))


async def test_a_stop_string_ends_the_answer_before_it(client):
    for fields in ({"stop": " of"}, {"stop": ["nowhere", " of F"]}):
        (choice,) = (await _chat(client, max_tokens=20, **fields)).json()["choices"]
        assert choice["message"]["content"] == ANSWER[: ANSWER.index(" of")]
        assert choice["finish_reason"] == "stop"


async def test_a_seed_reproduces_an_answer_and_no_seed_varies(client):
    async def text(**fields):
        data = (await _chat(client, temperature=3, max_tokens=4, **fields)).json()
        return data["choices"][0]["message"]["content"]

    assert await text(seed=5) == await text(seed=5)
    assert len({await text() for _ in range(3)}) > 1


async def test_a_completion_takes_text_and_ids_alike(client, reference):
    ids = list(reference.encode("The capital of France is"))
    text = (await _complete(client, max_tokens=2, return_token_ids=True)).json()["choices"]
    assert (
        text == (await _complete(client, prompt=ids, max_tokens=2, return_token_ids=True)).json()["choices"]
    )
    assert text[0]["text"] == " Paris."
    assert text[0]["prompt_token_ids"] == ids


async def test_several_prompts_give_several_choices_and_one_usage(client):
    for prompt in (["The sky is", "One two"], [[504], [504, 3575]]):
        data = (await _complete(client, prompt=prompt)).json()
        assert [choice["index"] for choice in data["choices"]] == [0, 1]
        assert data["usage"]["completion_tokens"] == 2
        streamed = _events(await _complete(client, prompt=prompt, stream=True))
        texts = [event["choices"][0]["text"] for event in streamed]
        assert texts == [choice["text"] for choice in data["choices"]]


async def test_legacy_logprobs_have_tokens_tops_and_offsets(client):
    (choice,) = (await _complete(client, max_tokens=2, logprobs=2)).json()["choices"]
    logprobs = choice["logprobs"]
    assert logprobs["tokens"] == [" Paris", "."]
    assert logprobs["text_offset"] == [0, 6]
    assert all(len(top) == 2 for top in logprobs["top_logprobs"])
    assert logprobs["top_logprobs"][0][" Paris"] == logprobs["token_logprobs"][0]


async def test_echo_puts_the_prompt_s_own_logprobs_before_the_answer(client, engine, reference):
    ids = reference.encode("The capital of France is")
    scores = await engine.score_prompt(engine.load("smollm2-135m"), ids, 1)
    (choice,) = (await _complete(client, echo=True, logprobs=1)).json()["choices"]
    assert choice["text"] == "The capital of France is Paris"
    logprobs = choice["logprobs"]
    assert logprobs["token_logprobs"][:5] == [None, *scores.logprobs.tolist()]
    assert len(logprobs["tokens"]) == len(logprobs["top_logprobs"]) == len(logprobs["text_offset"]) == 6


async def test_echo_with_no_tokens_scores_the_prompt_alone(client):
    (choice,) = (await _complete(client, echo=True, logprobs=0, max_tokens=0)).json()["choices"]
    assert choice["text"] == "The capital of France is"
    assert len(choice["logprobs"]["tokens"]) == 5
    assert choice["finish_reason"] == "length"


async def test_prompt_logprobs_have_vllm_s_shape_on_both_routes(client, engine, reference):
    ids = reference.encode("The capital of France is")
    scores = await engine.score_prompt(engine.load("smollm2-135m"), ids, 2)
    (choice,) = (await _complete(client, prompt_logprobs=2)).json()["choices"]
    first, *rest = choice["prompt_logprobs"]
    assert first is None
    for position, token_id, logprob, rank in zip(rest, ids[1:], scores.logprobs, scores.ranks, strict=True):
        assert position[str(token_id)]["logprob"] == float(logprob)
        assert position[str(token_id)]["rank"] == rank
        assert len(position) in {2, 3}
    chat = (await _chat(client, prompt_logprobs=0)).json()["prompt_logprobs"]
    assert [len(position or ()) for position in chat] == [0] + [1] * 36


async def test_tokenize_gives_the_ids_the_routes_use(client, reference):
    chat = (await client.post("/tokenize", json={"model": MODEL, "messages": MESSAGES})).json()
    assert tuple(chat["tokens"]) == reference.render(MESSAGES)
    assert (chat["count"], chat["max_model_len"]) == (37, 8_192)
    text = (await client.post("/tokenize", json={"prompt": "The capital"})).json()
    assert tuple(text["tokens"]) == reference.encode("The capital")
    bare = {"messages": MESSAGES, "add_generation_prompt": False}
    assert (await client.post("/tokenize", json=bare)).json()["count"] == 33


@pytest.mark.parametrize(
    ("fields", "status", "param", "code"),
    [
        ({"model": "other"}, 404, "model", "model_not_found"),
        ({"logprobs": True, "top_logprobs": 21}, 400, "top_logprobs", None),
        ({"top_logprobs": 2}, 400, "top_logprobs", None),
        ({"messages": None}, 400, "messages", None),
        (
            {"messages": [{"role": "user", "content": "a " * 8_200}]},
            400,
            "messages",
            "context_length_exceeded",
        ),
        ({"max_tokens": 8_192}, 400, "messages", "context_length_exceeded"),
        ({"n": 2}, 400, "n", None),
        ({"tool_choice": "required"}, 400, "tool_choice", None),
        ({"stream": True, "prompt_logprobs": 1}, 400, "prompt_logprobs", None),
    ],
)
async def test_a_chat_that_cannot_be_served_is_refused_in_openai_s_shape(client, fields, status, param, code):
    response = await _chat(client, **fields)
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["code"]) == (status, param, code)
    assert error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "fields", [{"prompt": []}, {"prompt": ""}, {"prompt": [10**6]}, {"max_tokens": 0}, {"logprobs": 21}]
)
async def test_a_completion_that_cannot_be_served_is_a_400(client, fields):
    response = await _complete(client, **fields)
    assert response.status_code == 400
    assert response.json()["error"]["message"]


async def test_what_is_not_json_or_not_there_has_an_error_object_too(client):
    broken = await client.post("/v1/chat/completions", content=b"{")
    assert (broken.status_code, broken.json()["error"]["type"]) == (400, "invalid_request_error")
    assert (await client.get("/nowhere")).json()["error"]["message"] == "Not Found"
    assert (await client.get("/v1/completions")).status_code == 405


async def test_a_failure_of_the_engine_is_a_500_and_the_next_request_works(client, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr("reference_engine.worker.next_token_logprobs", broken)
        response = await _chat(client)
    assert (response.status_code, response.json()["error"]["type"]) == (500, "server_error")
    assert (await _chat(client)).status_code == 200


async def test_a_stream_that_breaks_ends_with_its_error_and_without_done(client, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("reference_engine.generation.hidden_states", broken)
    response = await _chat(client, stream=True, max_tokens=3)
    last = response.text.strip().split("\n\n")[-1]
    assert "out of memory" in json.loads(last.removeprefix("data: "))["error"]["message"]


async def test_only_the_right_key_opens_a_guarded_server(engine):
    async with _client(engine, key=Secret("s3cret-of-the-test", name="KEY")) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}):
            response = await client.get("/v1/models", headers=headers)
            assert response.status_code == 401
            assert response.json()["error"]["code"] == "invalid_api_key"
            assert "s3cret" not in response.text
        client.headers["authorization"] = "Bearer s3cret-of-the-test"
        assert (await client.get("/v1/models")).status_code == 200
        assert (await _chat(client)).status_code == 200


async def test_a_client_that_goes_away_ends_its_generation(client, engine):
    async def passes():
        return await asyncio.wrap_future(engine.call(lambda: engine.counters.forward_passes))

    async def settle():
        # A running generation takes a step in every turn of the engine, so two equal readings mean none runs.
        async with asyncio.timeout(120):
            while await passes() != await passes():
                pass

    before = await passes()
    body = {"model": MODEL, "prompt": "Count:", "max_tokens": 3_000, "ignore_eos": True, "temperature": 0}
    async with client.stream("POST", "/v1/completions", json=body | {"stream": True}) as response:
        await anext(response.aiter_bytes())
    await settle()
    whole = asyncio.create_task(client.post("/v1/completions", json=body))
    middle = await passes()
    while await passes() < middle + 8:
        pass
    whole.cancel()
    await settle()
    assert await passes() - before < 2_000


async def test_an_address_in_use_is_a_clear_error(engine):
    async with _client(engine) as client:
        with pytest.raises(UsageError, match="cannot be used"):
            async with serve_app(
                create_app(engine, Replica(MODEL, "smollm2-135m")), port=client.base_url.port
            ):
                pass
