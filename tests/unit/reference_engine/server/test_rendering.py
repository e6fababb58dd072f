"""A body's chat is what the template gets."""

import orjson
import pytest

from reference_engine.server.api_errors import ApiError
from reference_engine.server.bodies import ChatBody, TokenizeBody, parse_body

USER = {"role": "user", "content": "hi"}


def _chat(kind=ChatBody, **fields):
    body = parse_body(orjson.dumps({"model": "m", "messages": [USER], **fields}), kind)
    return body.chat(body.messages)


@pytest.mark.parametrize("kind", [ChatBody, TokenizeBody])
def test_the_fields_of_a_request_are_those_of_the_chat(kind):
    tools = [{"type": "function", "function": {"name": "f"}}]
    plain = _chat(kind)
    assert (plain.messages, plain.tools, plain.options) == ((USER,), None, {})
    assert (plain.generation_prompt, plain.continue_final) == (True, False)
    asked = _chat(
        kind,
        tools=tools,
        add_generation_prompt=False,
        continue_final_message=True,
        chat_template_kwargs={"enable_thinking": False},
    )
    assert (asked.tools, asked.options) == (tuple(tools), {"enable_thinking": False})
    assert (asked.generation_prompt, asked.continue_final) == (False, True)


def test_an_open_end_and_a_generation_prompt_exclude_each_other():
    with pytest.raises(ApiError, match="continue_final_message needs add_generation_prompt: false"):
        _chat(continue_final_message=True)


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        ('{"b": 1, "a": [2]}', {"b": 1, "a": [2]}),
        ({"b": 1}, {"b": 1}),
        ("{broken", "{broken"),
        ("[1]", "[1]"),
        ("", ""),
    ],
)
def test_arguments_travel_as_text_and_reach_the_template_as_an_object(sent, given):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": sent}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    (rendered,) = _chat(messages=[message]).messages
    assert rendered["tool_calls"][0]["function"]["arguments"] == given


@pytest.mark.parametrize("calls", [None, [], ["f"], [{"function": None}]])
def test_calls_of_another_shape_are_left_to_the_template(calls):
    (rendered,) = _chat(messages=[{"role": "assistant", "content": "", "tool_calls": calls}]).messages
    assert rendered["tool_calls"] == calls
