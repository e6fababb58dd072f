"""Tool calls through real requests: honest ones have no fault, and every knob is named by its code."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import asynccontextmanager
from functools import partial

import httpx
import pytest

from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from reference_engine.server.tool_calls.knobs import KNOBS, RAW_KNOBS
from reference_engine.server.tool_calls.stream_faults import STREAM_FAULTS
from reference_engine.server.tool_calls.template import TOOLS_TEMPLATE
from ringtrue.errors import ConfigError, UsageError
from ringtrue.records import Party, Severity
from toolcall_validator.families import FORMATS, Answered, blame, parse
from toolcall_validator.fault import CODES
from toolcall_validator.validate import Validator, chunks_of

MODEL = "kimi-small"  # a Kimi by name, so that the form of ids is judged as well
NOT_ONE_ANSWER = {"stream.parity"}
STREAMED_ONLY = {*STREAM_FAULTS, "args.empty_stream"}


def _tool(name, description, parameters):
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


FORECAST = _tool(
    "get_forecast",
    "Weather of the coming days at a place.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 40},
            "station": {"type": "string", "pattern": "^[A-Z]{3}-\\d{2}$"},
            "units": {"enum": ["metric", "imperial"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "place": {"$ref": "#/$defs/place"},
            "labels": {"type": "array", "items": {"type": "string"}, "contains": {"const": "rain"}},
            "note": {"type": ["string", "null"]},
        },
        "required": ["city", "station", "units", "days", "place", "labels"],
        "additionalProperties": False,
        "$defs": {
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                "required": ["lat", "lon"],
                "additionalProperties": False,
            }
        },
    },
)
PING = _tool("ping", "Checks that the line is open.", {"type": "object", "properties": {}})
ROOMS = _tool(
    "list_rooms",
    "Rooms of a building.",
    {"type": "object", "properties": {"building": {"type": "string"}}, "required": ["building"]},
)
ANSWER = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {
            "type": "object",
            "properties": {"colour": {"type": "string"}, "shade": {"type": ["integer", "null"]}},
            "required": ["colour", "shade"],
        },
    },
}
FORECAST_ASKED = {"messages": [{"role": "user", "content": "Please get_forecast for Oslo this weekend."}]}
PING_ASKED = {"messages": [{"role": "user", "content": "Use ping."}], "tools": [PING, ROOMS]}
BOTH_ASKED = {"messages": [{"role": "user", "content": "First list_rooms of the castle, then ping."}]}
TEXT_ASKED = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 6}
REQUIRED = {**TEXT_ASKED, "max_tokens": 900, "tool_choice": "required"}
NAMED = {**BOTH_ASKED, "tool_choice": {"type": "function", "function": {"name": "list_rooms"}}}
STRUCTURED = {**TEXT_ASKED, "max_tokens": 300, "response_format": ANSWER, "tools": None}
HONEST = {
    "auto": FORECAST_ASKED,
    "no arguments": PING_ASKED,
    "parallel": BOTH_ASKED,
    "one at a time": {**BOTH_ASKED, "parallel_tool_calls": False},
    "required": REQUIRED,
    "named": NAMED,
    "required without arguments": {**PING_ASKED, "tool_choice": "required"},
    "none": {**PING_ASKED, "tool_choice": "none", "max_tokens": 6},
    "text": TEXT_ASKED,
    "structured": STRUCTURED,
    "any object": {**STRUCTURED, "response_format": {"type": "json_object"}},
}
ASKED = {
    "args.empty_stream": PING_ASKED,
    "choice.none_violated": {**PING_ASKED, "tool_choice": "none", "max_tokens": 200},
    "choice.required_violated": {**PING_ASKED, "tool_choice": "required", "max_tokens": 200},
    "choice.wrong_function": NAMED,
    "finish.length_hidden": {**FORECAST_ASKED, "max_tokens": 120},
    "id.duplicate": BOTH_ASKED,
    "output.structured_invalid": STRUCTURED,
}


@pytest.fixture(scope="module")
def roomy_model(small_model, tmp_path_factory):
    """The small model, promising a context that holds tools as one token a byte."""
    folder = tmp_path_factory.mktemp("roomy") / "model"
    shutil.copytree(small_model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 16_384}))
    return str(folder)


@pytest.fixture
def serve(small_engine, roomy_model):
    @asynccontextmanager
    async def client(*tool_faults, template=TOOLS_TEMPLATE, family="kimi", share=1.0):
        faults = Faults(tool_faults=tool_faults, share=share)
        replica = Replica(MODEL, roomy_model, faults, tool_format=family, chat_template=template)
        app = create_app(small_engine, replica, rng=random.Random(4))  # noqa: S311  # no secret
        # On loopback there is no certificate to check, and reading them for every client takes long.
        unchecked = httpx.AsyncHTTPTransport(verify=False)
        async with (
            serve_app(app) as url,
            httpx.AsyncClient(base_url=url, timeout=300, transport=unchecked) as opened,
        ):
            yield opened

    return client


def _body(fields, **more):
    body = {"model": MODEL, "tools": [FORECAST, PING, ROOMS], "temperature": 0, **fields, **more}
    if body.get("stream"):
        body["stream_options"] = {"include_usage": True}
    return {key: value for key, value in body.items() if value is not None}


async def _record(client, fields, *, stream, **more):
    """One exchange in the interchange format, made of the bytes that came."""
    body = _body(fields, stream=stream, **more)
    response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    if not stream:
        return {"request": body, "response": response.json()}
    chunks, done = chunks_of([response.content])
    return {"request": body, "chunks": chunks, "done": done}


def _codes(record):
    return {fault.code for fault in Validator().validate(record) if fault.severity is not Severity.INFO}


def _message(record):
    return record["response"]["choices"][0]["message"]


def _calls(record):
    return [(c["function"]["name"], c["function"]["arguments"]) for c in _message(record)["tool_calls"]]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_honest_server_has_no_fault(serve, stream):
    async with serve() as client:
        found = {
            name: _codes(await _record(client, fields, stream=stream)) for name, fields in HONEST.items()
        }
    assert {name: codes for name, codes in found.items() if codes} == {}


def test_every_code_that_a_server_can_cause_has_a_knob():
    assert set(KNOBS) == set(CODES) - {"request.broken_schema"}


@pytest.mark.parametrize("code", sorted(set(KNOBS) - NOT_ONE_ANSWER))
async def test_every_knob_is_named_by_its_code(serve, code):
    fields = ASKED.get(code, FORECAST_ASKED)
    async with serve(code) as client:
        for stream in (False, True):
            found = _codes(await _record(client, fields, stream=stream))
            assert (code in found) == (stream or code not in STREAMED_ONLY)


def test_the_honest_server_is_asked_what_the_faulty_ones_are():
    uncapped = [fields | {"max_tokens": None} for fields in HONEST.values()]
    for fields in (FORECAST_ASKED, *ASKED.values()):
        assert fields | {"max_tokens": None} in uncapped


@pytest.mark.parametrize("fields", [FORECAST_ASKED, PING_ASKED, {**TEXT_ASKED, "tools": None}])
async def test_parity_breaks_in_the_streamed_answer_alone(serve, fields):
    async with serve("stream.parity") as client, serve() as honest:
        plain, streamed = [await _record(client, fields, stream=stream) for stream in (False, True)]
        right = [await _record(honest, fields, stream=stream) for stream in (False, True)]
    assert [fault.code for fault in Validator().validate_pair(plain, streamed)] == ["stream.parity"]
    assert not _codes(plain)
    assert not Validator().validate_pair(*right)


@pytest.mark.parametrize("code", ["output.empty", "output.reasoning_only", "leak.content", "finish.missing"])
async def test_an_answer_without_tools_can_be_spoiled_too(serve, code):
    async with serve(code) as client:
        for stream in (False, True):
            record = await _record(client, TEXT_ASKED, stream=stream, tools=None)
            assert code in _codes(record)


async def _raw(client, prompt):
    body = {"model": MODEL, "prompt": prompt, "max_tokens": 2_000, "temperature": 0}
    response = await client.post("/v1/completions", json=body)
    return response.json()["choices"][0]["text"]


async def _rendered(client, fields):
    body = {key: value for key, value in _body(fields).items() if key in ("messages", "tools")}
    return (await client.post("/tokenize", json=body)).json()["tokens"]


def _blamed(record, raw, family):
    schemas = {
        tool["function"]["name"]: tool["function"]["parameters"] for tool in record["request"]["tools"]
    }
    validator = Validator()

    def fits(name, arguments):
        call = {"id": "functions.f:0", "type": "function", "function": {"name": name, "arguments": arguments}}
        message = {"role": "assistant", "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        found = validator.validate({"request": record["request"], "response": {"choices": [choice]}})
        return not any(fault.code.startswith(("args.", "schema.", "name.")) for fault in found)

    message = _message(record)
    answered = [Answered(*call) for call in _calls(record)] if message.get("tool_calls") else []
    shown = (message.get("content") or "") + message.get("reasoning_content", "")
    return blame(parse(family, raw, schemas), answered, fits, shown)


@pytest.mark.parametrize("code", RAW_KNOBS)
async def test_what_the_model_wrote_wrong_is_wrong_in_the_raw_text_already(serve, code):
    async with serve(f"raw:{code}") as client:
        record = await _record(client, FORECAST_ASKED, stream=False)
        raw = await _raw(client, await _rendered(client, FORECAST_ASKED))
    assert code in _codes(record)
    if not code.startswith("output."):  # those are no fault of one call by itself
        assert _blamed(record, raw, "kimi") is Party.MODEL


@pytest.mark.parametrize("code", [code for code in RAW_KNOBS if not code.startswith("output.")])
async def test_what_the_parser_spoiled_stands_right_in_the_raw_text(serve, code):
    async with serve(code) as client:
        record = await _record(client, FORECAST_ASKED, stream=False)
        raw = await _raw(client, await _rendered(client, FORECAST_ASKED))
    assert _blamed(record, raw, "kimi") is Party.PROVIDER


@pytest.mark.parametrize("family", FORMATS)
async def test_every_format_writes_and_reads_its_own_calls(serve, family):
    async with serve(family=family) as client:
        for fields in (FORECAST_ASKED, BOTH_ASKED):
            plain = await _record(client, fields, stream=False)
            streamed = await _record(client, fields, stream=True)
            raw = await _raw(client, await _rendered(client, fields))
            found = [_codes(record) - {"id.family_format"} for record in (plain, streamed)]
            assert found == [set(), set()]
            assert _blamed(plain, raw, family) is None
            # The text of a cut-free answer and the token that ends it, one token a byte.
            assert plain["response"]["usage"]["completion_tokens"] == len(raw.encode()) + 1


async def test_the_same_prompt_as_text_or_ids_gives_the_same_raw_text(serve, small):
    async with serve() as client:
        ids = await _rendered(client, BOTH_ASKED)
        assert await _raw(client, small.codec.decode(ids)) == await _raw(client, ids)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_share_of_sessions_meets_the_fault(serve, stream):
    faults = Faults(tool_faults=("args.not_json",), share=0.5)
    met = {session: faults.meets(session, seed=0) for session in map(str, range(6))}
    assert set(met.values()) == {True, False}
    async with serve("args.not_json", share=0.5) as client:
        for session, broken in met.items():
            record = await _record(client, FORECAST_ASKED, stream=stream, user=session)
            assert _codes(record) == ({"args.not_json"} if broken else set())


async def test_arguments_are_the_same_at_temperature_0_and_follow_the_seed_above(serve):
    async with serve() as client:
        ask = partial(_record, client, FORECAST_ASKED, stream=False)
        cold = [_calls(await ask(seed=seed)) for seed in (1, 2)]
        warm = [_calls(await ask(seed=seed, temperature=1)) for seed in (1, 2, 1)]
    assert cold[0] == cold[1]
    assert warm[0] == warm[2] != warm[1]


async def test_a_call_that_the_cap_cuts_ends_with_length(serve):
    async with serve() as client:
        record = await _record(client, FORECAST_ASKED, stream=False, max_tokens=150)
    choice = record["response"]["choices"][0]
    assert choice["finish_reason"] == "length"
    assert record["response"]["usage"]["completion_tokens"] == 150
    ((name, arguments),) = _calls(record)
    assert name == "get_forecast"
    assert arguments.startswith('{"city"')
    assert not arguments.endswith("}")


async def test_a_stop_string_ends_a_forced_answer(serve):
    async with serve() as client:
        record = await _record(client, STRUCTURED, stream=False, stop=["shade"])
    assert record["response"]["choices"][0]["finish_reason"] == "stop"
    assert _message(record)["content"].endswith('", "')


async def test_several_named_tools_are_called_in_their_order_unless_one_call_is_asked_for(serve):
    async with serve() as client:
        both = await _record(client, BOTH_ASKED, stream=False)
        one = await _record(client, BOTH_ASKED, stream=False, parallel_tool_calls=False)
    assert [name for name, _ in _calls(both)] == ["list_rooms", "ping"]
    assert [name for name, _ in _calls(one)] == ["list_rooms"]


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
        text = await _record(client, {"messages": turns, "max_tokens": 4}, stream=False)
        next_call = await _record(client, {"messages": again}, stream=False)
    assert "tool_calls" not in _message(text)
    assert _message(next_call)["tool_calls"][0]["id"] == "functions.ping:1"


async def test_a_template_that_drops_the_tools_never_calls_by_itself_but_by_force(serve):
    async with serve(template=None) as client:
        with_tools = await _rendered(client, FORECAST_ASKED)
        assert with_tools == await _rendered(client, {**FORECAST_ASKED, "tools": None})
        auto = await _record(client, FORECAST_ASKED, stream=False, max_tokens=4)
        required = await _record(client, FORECAST_ASKED, stream=False, tool_choice="required")
    assert "tool_calls" not in _message(auto)
    assert [name for name, _ in _calls(required)] == ["get_forecast"]


async def test_forced_tokens_carry_the_model_s_own_logprobs(serve):
    more = {"logprobs": True, "top_logprobs": 2, "return_token_ids": True, "prompt_logprobs": 1}
    async with serve() as client:
        plain = (await _record(client, PING_ASKED, stream=False, **more))["response"]
        del more["prompt_logprobs"]
        streamed = await _record(client, PING_ASKED, stream=True, **more)
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
        ({"tools": [_tool("f", "", {"type": "strange"})], "tool_choice": "required"}, "tools"),
        (
            {"tools": [_tool("f", "", {"type": "string", "allOf": [False]})], "tool_choice": "required"},
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
        response = await client.post("/v1/chat/completions", json=_body(TEXT_ASKED, **fields))
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


async def test_a_completion_knows_no_response_format(serve):
    body = {"model": MODEL, "prompt": "a", "response_format": {"type": "json_object"}}
    async with serve() as client:
        response = await client.post("/v1/completions", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "response_format")


@pytest.mark.parametrize(
    ("fault", "family"), [("raw:args.not_json", "qwen_xml"), ("raw:args.duplicated", "hermes")]
)
def test_a_format_that_cannot_hold_the_fault_is_refused(small_engine, roomy_model, fault, family):
    replica = Replica(MODEL, roomy_model, Faults(tool_faults=(fault,)), tool_format=family)
    with pytest.raises(ConfigError, match=family):
        create_app(small_engine, replica)


def test_a_format_that_does_not_exist_is_refused(small_engine, roomy_model):
    with pytest.raises(UsageError, match="morse"):
        create_app(small_engine, Replica(MODEL, roomy_model, tool_format="morse"))


async def test_the_embedded_model_answers_with_the_template_of_its_own_and_with_ours(engine):
    body = _body(FORECAST_ASKED, max_tokens=400)
    counts = {}
    for template in (None, TOOLS_TEMPLATE):
        app = create_app(engine, Replica(MODEL, "smollm2-135m", chat_template=template))
        async with serve_app(app) as url, httpx.AsyncClient(base_url=url, timeout=300) as client:
            response = await client.post("/v1/chat/completions", json={**body, "tool_choice": "required"})
            counts[template] = response.json()["usage"]["prompt_tokens"]
            assert not _codes({"request": body, "response": response.json()}) - {"id.family_format"}
    assert counts[None] < 60 < counts[TOOLS_TEMPLATE]
