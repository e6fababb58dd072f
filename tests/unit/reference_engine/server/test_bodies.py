import orjson
import pytest

from reference_engine.server.api_errors import ApiError
from reference_engine.server.bodies import ChatBody, CompletionBody, parse_body

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def _chat(**fields):
    return parse_body(orjson.dumps({**CHAT, **fields}), ChatBody)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"text"', b'{"model": NaN}'])
def test_what_is_no_json_object_is_a_400(raw):
    with pytest.raises(ApiError) as caught:
        parse_body(raw, ChatBody)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("field", "value"),
    [("n", 2), ("presence_penalty", 0.5), ("top_k", 40), ("functions", [{"name": "f"}])],
)
def test_a_field_that_would_change_the_answer_is_refused_by_name(field, value):
    with pytest.raises(ApiError) as caught:
        _chat(**{field: value})
    assert (caught.value.status, caught.value.param) == (400, field)


def test_neutral_and_unknown_fields_pass():
    assert _chat(n=1, presence_penalty=0, logit_bias={}, metadata={"a": 1}, top_k=-1).temperature == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("temperature", -1), ("top_p", 0), ("top_p", 2), ("max_tokens", 0), ("messages", []), ("seed", "x")],
)
def test_a_value_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(ApiError) as caught:
        _chat(**{field: value})
    assert caught.value.param.startswith(field)


@pytest.mark.parametrize(("stop", "expected"), [(None, []), ("x", ["x"]), (["x", "y"], ["x", "y"])])
def test_stop_may_be_absent_one_or_several(stop, expected):
    assert _chat(stop=stop).stop == expected


def test_text_parts_join_with_a_newline_and_other_parts_are_refused():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert _chat(messages=[{"role": "user", "content": parts}]).messages[0].content == "a\nb"
    with pytest.raises(ApiError, match="type text"):
        _chat(messages=[{"role": "user", "content": [{"type": "image_url"}]}])


def test_fields_of_a_message_beyond_role_and_content_reach_the_template():
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    dumped = _chat(messages=[call]).messages[0].model_dump()
    assert dumped == {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("a", ["a"]), ([1, 2], [[1, 2]]), (["a", "b"], ["a", "b"]), ([[1], [2, 3]], [[1], [2, 3]])],
)
def test_a_completion_prompt_is_text_or_ids_or_several(prompt, expected):
    body = parse_body(orjson.dumps({"model": "m", "prompt": prompt}), CompletionBody)
    assert body.prompts == expected
