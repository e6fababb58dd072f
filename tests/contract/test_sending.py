"""What is sent, over which connection, and when things are said to have happened."""

from __future__ import annotations

import gzip
import json

import pytest

from probes.cache_key import CacheKeys
from probes.dialects import dialect_named
from probes.http_endpoint import connect
from ringtrue.errors import ConfigError, SecretError
from ringtrue.records import EndpointSpec, FailureKind, Request, Sampling
from tests.contract.fakes import HELLO, HELLO_STREAMED, SteppedClock, endpoint_at
from tests.contract.fault_server import (
    Script,
    chat_answer,
    chat_delta,
    error_script,
    json_script,
    serve,
    stream_script,
)

FINE = json_script(chat_answer("fine"))
KEY = "sk-planted-0123456789abcdef"


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_the_base_url_may_be_given_with_or_without_its_version(suffix: str) -> None:
    async with serve(FINE) as server, endpoint_at(server.url.removesuffix("/v1") + suffix) as endpoint:
        await endpoint.send(HELLO)
        await endpoint.send(Request(id="p", prompt="x"))
        await endpoint.call("POST", "/tokenize", {"prompt": "x"})
        await endpoint.call("GET", "/v1/models")
    assert [(seen.method, seen.path) for seen in server.seen] == [
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/completions"),
        ("POST", "/tokenize"),
        ("GET", "/v1/models"),
    ]


async def test_the_vllm_dialect_asks_for_ids_and_prompt_logprobs_and_the_openai_dialect_does_not() -> None:
    request = Request(
        id="r",
        prompt_token_ids=(1, 2),
        logprobs=5,
        prompt_logprobs=2,
        return_token_ids=True,
        sampling=Sampling(max_tokens=1),
    )
    async with serve(FINE) as server:
        for dialect in ("openai", "vllm"):
            async with endpoint_at(server.url, dialect=dialect) as endpoint:
                await endpoint.send(request)
    common = {"model": "m", "prompt": [1, 2], "temperature": 0.0, "max_tokens": 1, "logprobs": 5}
    own = {"return_token_ids": True, "return_tokens_as_token_ids": True, "prompt_logprobs": 2}
    assert [seen.body for seen in server.seen] == [common, common | own]


async def test_an_idle_connection_is_used_again_and_sessions_have_their_own() -> None:
    in_session = Request(id="s", messages=HELLO.messages, session="night-7")
    async with serve(FINE) as server, endpoint_at(server.url) as endpoint:
        for request in (HELLO, in_session, HELLO, in_session):
            await endpoint.send(request)
    assert [seen.connection for seen in server.seen] == [0, 1, 0, 1]
    assert [seen.headers.get("x-session-id") for seen in server.seen] == [None, "night-7", None, "night-7"]


async def test_the_key_of_a_session_goes_into_the_body_as_its_dialect_names_it() -> None:
    in_session = Request(id="s", messages=HELLO.messages, session="night-7")
    async with serve(FINE) as server:
        for dialect in ("openai", "vllm"):
            async with endpoint_at(server.url, dialect=dialect) as endpoint:
                await endpoint.send(CacheKeys(dialect_named(dialect)).put(in_session))
    sent = [{name for name in seen.body if name not in {"model", "messages"}} for seen in server.seen]
    assert [fields - {"temperature", "max_tokens"} for fields in sent] == [
        {"prompt_cache_key"},
        {"cache_salt"},
    ]
    assert server.seen[0].body["prompt_cache_key"] == server.seen[1].body["cache_salt"] == "night-7"


async def test_times_are_stamped_at_the_read_that_brought_them() -> None:
    steps = SteppedClock()
    script = stream_script(chat_delta(""), chat_delta("a"), chat_delta("b"), chat_delta(None, "stop"))
    async with serve(script) as server, endpoint_at(server.url, steps=steps) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    times = exchange.timings
    assert (times.scheduled, times.sent) == (100.0, 100.0)
    readings = [times.first_byte, times.first_content, times.last_content, times.end]
    assert all(reading == 100.0 for reading in readings)
    assert b"".join(chunk.data for chunk in exchange.wire) == b"".join(
        part for part in script.parts if isinstance(part, bytes)
    )


async def test_a_plain_answer_to_a_streamed_request_is_read_all_the_same() -> None:
    async with serve(FINE) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    assert (exchange.error, exchange.text) == (None, "fine")


async def test_a_stream_without_its_content_type_is_read_all_the_same() -> None:
    script = stream_script(chat_delta("a", "stop"))
    async with (
        serve(Script(script.parts, 200, {}, chunked=True)) as server,
        endpoint_at(server.url) as endpoint,
    ):
        exchange = await endpoint.send(HELLO_STREAMED)
    assert (exchange.error, exchange.text) == (None, "a")


async def test_a_body_compressed_against_our_wish_is_read_all_the_same() -> None:
    body = gzip.compress(json.dumps(chat_answer("fine")).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    async with serve(Script((body,), 200, headers)) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert server.seen[0].headers["accept-encoding"] == "identity"
    assert (exchange.error, exchange.text) == (None, "fine")


async def test_the_key_is_sent_and_an_echo_of_it_is_masked_everywhere() -> None:
    echo = error_script(401, f"Incorrect API key provided: {KEY}", headers={"x-echo": KEY})
    async with (
        serve(echo) as server,
        endpoint_at(server.url, api_key="env:PLANTED", env={"PLANTED": KEY}) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
        reply = await endpoint.call("GET", "/v1/models")
        shown = f"{exchange!r}{reply!r}{endpoint!r}{vars(endpoint)!r}"
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in shown
    assert exchange.error is not None
    assert "Check the key in env:PLANTED" in exchange.error.message
    assert f"provided: {'*' * len(KEY)}" in exchange.error.message


async def test_a_key_echoed_across_two_chunks_is_masked() -> None:
    half = len(KEY) // 2
    split = Script(
        (b"data: " + KEY[:half].encode(), KEY[half:].encode() + b"\n\n"),
        200,
        {"content-type": "text/event-stream"},
        chunked=True,
    )
    async with (
        serve(split) as server,
        endpoint_at(server.url, api_key="env:PLANTED", env={"PLANTED": KEY}) as endpoint,
    ):
        exchange = await endpoint.send(HELLO_STREAMED)
    received = b"".join(chunk.data for chunk in exchange.wire)
    assert received == b"data: " + b"*" * len(KEY) + b"\n\n"


async def test_cookies_are_neither_kept_nor_sent_back_and_other_headers_are_kept() -> None:
    script = json_script(chat_answer(), headers={"set-cookie": "session=abc", "x-request-id": "r-1"})
    async with serve(script) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
        await endpoint.send(HELLO)
    assert exchange.headers["x-request-id"] == "r-1"
    assert "set-cookie" not in exchange.headers
    assert "cookie" not in server.seen[1].headers


async def test_a_call_returns_the_parsed_body_or_the_failure() -> None:
    async with (
        serve(json_script({"data": []}), error_script(404, "Not Found")) as server,
        endpoint_at(server.url) as endpoint,
    ):
        models = await endpoint.call("GET", "/v1/models")
        missing = await endpoint.call("POST", "/tokenize", {"prompt": "x"})
    assert (models.status, models.body, models.error) == (200, {"data": []}, None)
    assert missing.error is not None
    assert (missing.status, missing.error.kind) == (404, FailureKind.NOT_FOUND)


def test_a_wrong_setting_names_the_endpoint_and_the_key() -> None:
    with pytest.raises(
        ConfigError, match=r"endpoint ep: dialect: unknown dialect 'vlm'. Did you mean 'vllm'"
    ):
        connect(EndpointSpec("ep", "http://h/v1", "m", dialect="vlm"), {})
    with pytest.raises(ConfigError, match="endpoint ep: base_url: not an http or https URL"):
        connect(EndpointSpec("ep", "h:80/v1", "m"), {})
    with pytest.raises(SecretError, match="endpoint ep: api_key: the environment variable MISSING"):
        connect(EndpointSpec("ep", "http://h/v1", "m", api_key="env:MISSING"), {})


def test_a_key_written_into_the_configuration_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match='api_key = "env:NAME"') as caught:
        connect(EndpointSpec("ep", "http://h/v1", "m", api_key=KEY), {})
    assert KEY not in f"{caught.value}{caught.value!r}"
