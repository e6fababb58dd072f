"""Tool calls and structured output of a vLLM whose template drops the tools: what it does wrong, by name."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from probes.http_endpoint import connect
from ringtrue.interchange import to_record
from ringtrue.records import EndpointSpec, Exchange, Request, Sampling
from tests.engines.servers import MODEL, Server
from toolcall_validator.validate import Validator

pytestmark = pytest.mark.engines

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Look up the weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
REPORT = {
    "type": "json_schema",
    "json_schema": {
        "name": "report",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"answer": {"type": "integer"}},
            "required": ["answer"],
            "additionalProperties": False,
        },
    },
}
ASKED = Request(
    "weather",
    messages=({"role": "user", "content": "Give me a weather report for Paris as JSON."},),
    sampling=Sampling(temperature=0.0, max_tokens=160),
)
REQUIRED = replace(ASKED, tools=(WEATHER,), tool_choice="required")
STRUCTURED = replace(
    ASKED,
    messages=({"role": "user", "content": "List three cities."},),
    response_format=REPORT,
)
STRING_FOR_OBJECT = replace(
    REQUIRED, messages=({"role": "user", "content": "What is the weather in Paris?"},)
)


def ask(server: Server, request: Request) -> Exchange:
    """Send one request as the probes do."""

    async def send() -> Exchange:
        spec = EndpointSpec("vllm", f"{server.url}/v1", MODEL, dialect="vllm")
        async with aclosing(connect(spec, {})) as endpoint:
            return await endpoint.send(request)

    return asyncio.run(send())


def codes(exchange: Exchange) -> list[str]:
    """Return the fault codes of the recorded answer, as ``ringtrue validate`` would read it."""
    assert exchange.error is None, exchange.error
    record: dict[str, Any] = to_record(exchange)
    return [fault.code for fault in Validator().validate(record)]


def test_the_template_drops_the_tools_and_the_prompt_is_as_long_without_them(vllm: Server) -> None:
    with_tools, without = ask(vllm, REQUIRED), ask(vllm, ASKED)
    assert with_tools.usage is not None
    assert without.usage is not None
    assert with_tools.usage.prompt_tokens == without.usage.prompt_tokens


def test_a_required_call_that_never_closes_is_named(vllm: Server) -> None:
    found = codes(ask(vllm, REQUIRED))
    assert {"choice.required_violated", "leak.unclosed"} <= set(found), found


def test_its_stream_delivers_what_its_plain_answer_leaks_and_the_pair_is_named(vllm: Server) -> None:
    plain, streamed = (ask(vllm, replace(REQUIRED, stream=stream)) for stream in (False, True))
    assert {code.partition(".")[0] for code in codes(streamed)} == {"args"}
    (fault,) = Validator().validate_pair(to_record(plain), to_record(streamed))
    assert fault.code == "stream.parity"


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_arguments_that_are_a_string_are_named(vllm: Server, stream: bool) -> None:
    found = codes(ask(vllm, replace(STRING_FOR_OBJECT, stream=stream)))
    assert "args.not_object" in found, found


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_white_space_instead_of_structured_output_is_named(vllm: Server, stream: bool) -> None:
    found = codes(ask(vllm, replace(STRUCTURED, stream=stream)))
    assert {"output.structured_invalid", "output.degenerate_loop"} <= set(found), found
