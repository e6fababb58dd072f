"""Tool calls through real requests: honest ones have no fault."""

from __future__ import annotations

from functools import partial

import httpx
import pytest

from reference_engine.server.app import create_app
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from reference_engine.server.tool_calls.template import TOOLS_TEMPLATE
from ringtrue.errors import UsageError
from tests.integration.tool_exchanges import (
    BOTH_ASKED,
    FORECAST_ASKED,
    HONEST,
    MODEL,
    PING_ASKED,
    STRUCTURED,
    TEXT_ASKED,
    blamed,
    calls_of,
    codes_of,
    declared,
    message_of,
    raw_text,
    recorded,
    rendered,
    request_body,
)
from toolcall_validator.families import FORMATS


@pytest.mark.parametrize("stream", [False, True])
async def test_an_honest_server_has_no_fault(serve, stream):
    async with serve() as client:
        found = {
            name: codes_of(await recorded(client, fields, stream=stream)) for name, fields in HONEST.items()
        }
    assert {name: codes for name, codes in found.items() if codes} == {}


@pytest.mark.parametrize("family", FORMATS)
async def test_every_format_writes_and_reads_its_own_calls(serve, family):
    async with serve(family=family) as client:
        for fields in (FORECAST_ASKED, BOTH_ASKED):
            plain = await recorded(client, fields, stream=False)
            streamed = await recorded(client, fields, stream=True)
            raw = await raw_text(client, await rendered(client, fields))
            found = [codes_of(record) - {"id.family_format"} for record in (plain, streamed)]
            assert found == [set(), set()]
            assert blamed(plain, raw, family) is None
            # The text of a cut-free answer and the token that ends it, one token a byte.
            assert plain["response"]["usage"]["completion_tokens"] == len(raw.encode()) + 1


async def test_the_same_prompt_as_text_or_ids_gives_the_same_raw_text(serve, small):
    async with serve() as client:
        ids = await rendered(client, BOTH_ASKED)
        assert await raw_text(client, small.codec.decode(ids)) == await raw_text(client, ids)


async def test_arguments_are_the_same_at_temperature_0_and_follow_the_seed_above(serve):
    async with serve() as client:
        ask = partial(recorded, client, FORECAST_ASKED, stream=False)
        cold = [calls_of(await ask(seed=seed)) for seed in (1, 2)]
        warm = [calls_of(await ask(seed=seed, temperature=1)) for seed in (1, 2, 1)]
    assert cold[0] == cold[1]
    assert warm[0] == warm[2] != warm[1]


async def test_a_call_that_the_cap_cuts_ends_with_length(serve):
    async with serve() as client:
        record = await recorded(client, FORECAST_ASKED, stream=False, max_tokens=150)
    choice = record["response"]["choices"][0]
    assert choice["finish_reason"] == "length"
    assert record["response"]["usage"]["completion_tokens"] == 150
    ((name, arguments),) = calls_of(record)
    assert name == "get_forecast"
    assert arguments.startswith('{"city"')
    assert not arguments.endswith("}")


async def test_a_stop_string_ends_a_forced_answer(serve):
    async with serve() as client:
        record = await recorded(client, STRUCTURED, stream=False, stop=["shade"])
    assert record["response"]["choices"][0]["finish_reason"] == "stop"
    assert message_of(record)["content"].endswith('", "')


async def test_several_named_tools_are_called_in_their_order_unless_one_call_is_asked_for(serve):
    async with serve() as client:
        both = await recorded(client, BOTH_ASKED, stream=False)
        one = await recorded(client, BOTH_ASKED, stream=False, parallel_tool_calls=False)
    assert [name for name, _ in calls_of(both)] == ["list_rooms", "ping"]
    assert [name for name, _ in calls_of(one)] == ["list_rooms"]


async def test_the_result_of_a_tool_is_answered_in_text_and_ids_go_on_counting(serve):
    call = {
        "id": "functions.ping:0",
        "type": "function",
        "function": {"name": "ping", "arguments": "{}"},
    }
    turns = [
        {"role": "user", "content": "Use ping."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "functions.ping:0", "content": "ping is fine"},
    ]
    again = [*turns, {"role": "user", "content": "ping again"}]
    async with serve() as client:
        text = await recorded(client, {"messages": turns, "max_tokens": 4}, stream=False)
        next_call = await recorded(client, {"messages": again}, stream=False)
    assert "tool_calls" not in message_of(text)
    assert message_of(next_call)["tool_calls"][0]["id"] == "functions.ping:1"


async def test_a_template_that_drops_the_tools_never_calls_by_itself_but_by_force(serve):
    async with serve(template=None) as client:
        with_tools = await rendered(client, FORECAST_ASKED)
        assert with_tools == await rendered(client, {**FORECAST_ASKED, "tools": None})
        auto = await recorded(client, FORECAST_ASKED, stream=False, max_tokens=4)
        required = await recorded(client, FORECAST_ASKED, stream=False, tool_choice="required")
    assert "tool_calls" not in message_of(auto)
    assert [name for name, _ in calls_of(required)] == ["get_forecast"]


async def test_forced_tokens_carry_the_model_s_own_logprobs(serve):
    more = {"logprobs": True, "top_logprobs": 2, "return_token_ids": True, "prompt_logprobs": 1}
    async with serve() as client:
        plain = (await recorded(client, PING_ASKED, stream=False, **more))["response"]
        del more["prompt_logprobs"]
        streamed = await recorded(client, PING_ASKED, stream=True, **more)
    choice = plain["choices"][0]
    entries = choice["logprobs"]["content"]
    assert len(entries) == plain["usage"]["completion_tokens"] == len(choice["token_ids"])
    assert all(entry["logprob"] <= entry["top_logprobs"][0]["logprob"] <= 0 for entry in entries)
    assert len(plain["prompt_logprobs"]) == len(plain["prompt_token_ids"])
    last = next(chunk for chunk in streamed["chunks"] if chunk["choices"][0]["finish_reason"])
    assert last["choices"][0]["logprobs"]["content"] == entries
    assert streamed["chunks"][0]["prompt_token_ids"] == plain["prompt_token_ids"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": None, "tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "fly"}}}, "tool_choice"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"response_format": {"type": "grammar"}}, "response_format"),
        ({"tools": [declared("f", "", {"type": "strange"})], "tool_choice": "required"}, "tools"),
        (
            {"tools": [declared("f", "", {"type": "string", "allOf": [False]})], "tool_choice": "required"},
            "tools",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"pattern": "(?=a)b"}}}},
            "response_format",
        ),
    ],
)
async def test_what_cannot_be_called_or_met_is_a_400_that_names_the_field(serve, fields, param):
    async with serve() as client:
        response = await client.post("/v1/chat/completions", json=request_body(TEXT_ASKED, **fields))
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


async def test_a_completion_knows_no_response_format(serve):
    body = {"model": MODEL, "prompt": "a", "response_format": {"type": "json_object"}}
    async with serve() as client:
        response = await client.post("/v1/completions", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "response_format")


def test_a_format_that_does_not_exist_is_refused(small_engine, roomy_model):
    with pytest.raises(UsageError, match="morse"):
        create_app(small_engine, Replica(MODEL, roomy_model, tool_format="morse"))


async def test_the_embedded_model_answers_with_the_template_of_its_own_and_with_ours(engine):
    body = request_body(FORECAST_ASKED, max_tokens=400)
    counts = {}
    for template in (None, TOOLS_TEMPLATE):
        app = create_app(engine, Replica(MODEL, "smollm2-135m", chat_template=template))
        async with serve_app(app) as url, httpx.AsyncClient(base_url=url, timeout=300) as client:
            response = await client.post("/v1/chat/completions", json={**body, "tool_choice": "required"})
            counts[template] = response.json()["usage"]["prompt_tokens"]
            assert not codes_of({"request": body, "response": response.json()}) - {"id.family_format"}
    assert counts[None] < 60 < counts[TOOLS_TEMPLATE]
