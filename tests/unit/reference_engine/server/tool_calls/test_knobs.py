from __future__ import annotations

import json

import pytest

from reference_engine.server.faults import Faults
from reference_engine.server.tool_calls.delivered import Delivered
from reference_engine.server.tool_calls.knobs import ANSWER_FAULTS, CALL_FAULTS, KNOBS, RAW_KNOBS, Knobs
from reference_engine.server.tool_calls.scene import Scene
from ringtrue.errors import ConfigError
from toolcall_validator.asked import read_request
from toolcall_validator.families import FORMATS, RawCall
from toolcall_validator.schemas import Schemas

PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}]
CALL = RawCall("f", '{"n": 3}', "functions.f:0")


def _scene(family="hermes", raw="<tool_call>\n{}\n</tool_call>", **request):
    return Scene(read_request({"tools": TOOLS, **request}), Schemas(), family, raw)


@pytest.mark.parametrize("name", ["args.nonsense", "raw:leak.content", "request.broken_schema", "raw:"])
def test_a_fault_that_does_not_exist_is_refused_with_those_that_do(name):
    with pytest.raises(ConfigError, match=r"args\.not_json") as caught:
        Faults(tool_faults=(name,))
    assert repr(name) in str(caught.value)


def test_every_fault_that_exists_is_taken():
    assert Faults(tool_faults=(*KNOBS, *(f"raw:{code}" for code in RAW_KNOBS))).knobs
    assert not Faults().knobs


@pytest.mark.parametrize("code", CALL_FAULTS)
def test_a_call_with_nothing_to_spoil_stays_a_call(code):
    spoiled = CALL_FAULTS[code](RawCall("f", "{}"), _scene())
    assert spoiled.name.startswith("f")


@pytest.mark.parametrize("code", [code for code in CALL_FAULTS if code.startswith("schema.")])
def test_arguments_that_are_broken_already_are_not_spoiled_further(code):
    broken = RawCall("f", '{"n": ')
    assert CALL_FAULTS[code](broken, _scene()) == broken


@pytest.mark.parametrize("code", [code for code in ANSWER_FAULTS if code.startswith(("leak.", "id."))])
def test_faults_of_calls_leave_an_answer_without_calls_its_text(code):
    told = ANSWER_FAULTS[code](Delivered("Hello"), _scene())
    assert told.content.startswith("Hello")
    assert told.calls == ()


@pytest.mark.parametrize("family", FORMATS)
def test_an_unclosed_call_opens_an_envelope_and_never_closes_it(family):
    told = ANSWER_FAULTS["leak.unclosed"](Delivered("", calls=(CALL,)), _scene(family, raw='{"name": "f"}'))
    assert told.content.startswith("<tool_call>")
    assert "</tool_call>" not in told.content
    assert told.calls == ()


def test_an_unknown_name_is_unknown_even_beside_similar_ones():
    twin = {"type": "function", "function": {"name": "f_v2"}}
    spoiled = CALL_FAULTS["name.unknown"](CALL, _scene(tools=[*TOOLS, twin]))
    assert (spoiled.name, spoiled.id) == ("f_v2_v2", "functions.f_v2_v2:0")


def test_a_duplicate_id_is_one_of_the_conversation_if_there_is_any():
    past = {"role": "assistant", "tool_calls": [{"id": "call_9", "function": {"name": "f"}}]}
    told = Delivered("", calls=(CALL, CALL))
    assert {call.id for call in ANSWER_FAULTS["id.duplicate"](told, _scene(messages=[past])).calls} == {
        "call_9"
    }
    assert {call.id for call in ANSWER_FAULTS["id.duplicate"](told, _scene()).calls} == {"call_0"}


def test_several_faults_act_one_after_the_other():
    told = Knobs(("args.not_object", "id.missing")).delivered(Delivered("", calls=(CALL,)), _scene())
    assert [(call.id, json.loads(call.arguments)) for call in told.calls] == [(None, [{"n": 3}])]


def test_what_is_delivered_and_what_is_written_are_spoiled_apart():
    raw, delivered = Knobs(("raw:args.value_lost",)), Knobs(("args.value_lost",))
    told = Delivered("", calls=(CALL,))
    assert (
        raw.written([CALL], _scene())[0].arguments == delivered.delivered(told, _scene()).calls[0].arguments
    )
    assert raw.delivered(told, _scene()) == told
    assert delivered.written([CALL], _scene()) == (CALL,)


@pytest.mark.parametrize(
    ("family", "holds"),
    [("kimi", True), ("mistral", True), ("harmony", True), ("hermes", False), ("glm", False)],
)
def test_a_format_that_cannot_hold_lost_brackets_is_told_apart(family, holds):
    knobs = Knobs(("raw:args.truncated_tail",))
    if holds:
        knobs.require_writable(family)
    else:
        with pytest.raises(ConfigError, match=family):
            knobs.require_writable(family)
