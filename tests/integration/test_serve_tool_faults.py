"""Every fault of tool calls that a server can be told to have is named by its code, through HTTP."""

from __future__ import annotations

import pytest

from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.tool_calls.knobs import KNOBS, RAW_KNOBS
from ringtrue.errors import ConfigError
from ringtrue.records import Party
from tests.integration.tool_exchanges import (
    ASKED,
    FORECAST_ASKED,
    HONEST,
    MODEL,
    NOT_ONE_ANSWER,
    PING_ASKED,
    STREAMED_ONLY,
    TEXT_ASKED,
    blamed,
    codes_of,
    raw_text,
    recorded,
    rendered,
)
from toolcall_validator.fault import CODES
from toolcall_validator.validate import Validator


def test_every_code_that_a_server_can_cause_has_a_knob():
    assert set(KNOBS) == set(CODES) - {"request.broken_schema"}


@pytest.mark.parametrize("code", sorted(set(KNOBS) - NOT_ONE_ANSWER))
async def test_every_knob_is_named_by_its_code(serve, code):
    fields = ASKED.get(code, FORECAST_ASKED)
    async with serve(code) as client:
        for stream in (False, True):
            found = codes_of(await recorded(client, fields, stream=stream))
            assert (code in found) == (stream or code not in STREAMED_ONLY)


def test_the_honest_server_is_asked_what_the_faulty_ones_are():
    uncapped = [fields | {"max_tokens": None} for fields in HONEST.values()]
    for fields in (FORECAST_ASKED, *ASKED.values()):
        assert fields | {"max_tokens": None} in uncapped


@pytest.mark.parametrize("fields", [FORECAST_ASKED, PING_ASKED, {**TEXT_ASKED, "tools": None}])
async def test_parity_breaks_in_the_streamed_answer_alone(serve, fields):
    async with serve("stream.parity") as client, serve() as honest:
        plain, streamed = [await recorded(client, fields, stream=stream) for stream in (False, True)]
        right = [await recorded(honest, fields, stream=stream) for stream in (False, True)]
    assert [fault.code for fault in Validator().validate_pair(plain, streamed)] == ["stream.parity"]
    assert not codes_of(plain)
    assert not Validator().validate_pair(*right)


@pytest.mark.parametrize("code", ["output.empty", "output.reasoning_only", "leak.content", "finish.missing"])
async def test_an_answer_without_tools_can_be_spoiled_too(serve, code):
    async with serve(code) as client:
        for stream in (False, True):
            record = await recorded(client, TEXT_ASKED, stream=stream, tools=None)
            assert code in codes_of(record)


@pytest.mark.parametrize("code", RAW_KNOBS)
async def test_what_the_model_wrote_wrong_is_wrong_in_the_raw_text_already(serve, code):
    async with serve(f"raw:{code}") as client:
        record = await recorded(client, FORECAST_ASKED, stream=False)
        raw = await raw_text(client, await rendered(client, FORECAST_ASKED))
    assert code in codes_of(record)
    if not code.startswith("output."):  # those are no fault of one call by itself
        assert blamed(record, raw, "kimi") is Party.MODEL


@pytest.mark.parametrize("code", [code for code in RAW_KNOBS if not code.startswith("output.")])
async def test_what_the_parser_spoiled_stands_right_in_the_raw_text(serve, code):
    async with serve(code) as client:
        record = await recorded(client, FORECAST_ASKED, stream=False)
        raw = await raw_text(client, await rendered(client, FORECAST_ASKED))
    assert blamed(record, raw, "kimi") is Party.PROVIDER


@pytest.mark.parametrize("stream", [False, True])
async def test_a_share_of_sessions_meets_the_fault(serve, stream):
    faults = Faults(tool_faults=("args.not_json",), share=0.5)
    met = {session: faults.meets(session, seed=0) for session in map(str, range(6))}
    assert set(met.values()) == {True, False}
    async with serve("args.not_json", share=0.5) as client:
        for session, broken in met.items():
            record = await recorded(client, FORECAST_ASKED, stream=stream, user=session)
            assert codes_of(record) == ({"args.not_json"} if broken else set())


@pytest.mark.parametrize(
    ("fault", "family"), [("raw:args.not_json", "qwen_xml"), ("raw:args.duplicated", "hermes")]
)
def test_a_format_that_cannot_hold_the_fault_is_refused(small_engine, roomy_model, fault, family):
    replica = Replica(MODEL, roomy_model, Faults(tool_faults=(fault,)), tool_format=family)
    with pytest.raises(ConfigError, match=family):
        create_app(small_engine, replica)
