from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.records import FailureKind, Usage
from ringtrue.wire import Answer, Event, SSEDecoder, assemble_body, assemble_stream, error_text, parse_json

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"


NAMES = (
    *("choices", "message", "delta", "text", "logprobs", "content", "tokens", "token_logprobs"),
    *("top_logprobs", "tool_calls", "usage", "index", "token_ids", "prompt_logprobs", "error"),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES), inner),
)


def body(**choice: Any) -> Answer:
    return assemble_body(json.dumps({"choices": [{"index": 0, **choice}]}).encode())


def stream(*values: Any, done: bool = True, echo: bool = False) -> Answer:
    events = [Event(value if isinstance(value, str) else json.dumps(value)) for value in values]
    return assemble_stream(events + ([Event("[DONE]")] if done else []), echo=echo)


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


def call(index: int | None = None, call_id: str | None = None, **function: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"function": function}
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry["id"] = call_id
    return delta(tool_calls=[entry])


def calls_of(answer: Answer) -> list[tuple[str | None, str, str]]:
    return [
        (found["id"], found["function"]["name"], found["function"]["arguments"])
        for found in answer.tool_calls
    ]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_read_under_both_of_its_names_and_once_when_both_are_sent(field: str) -> None:
    plain = body(message={"content": "4", "reasoning_content": None, field: "2+2"}, finish_reason="stop")
    assert (plain.text, plain.reasoning) == ("4", "2+2")
    streamed = stream(delta(**{field: "2"}), delta(reasoning="+2", reasoning_content="+2"), delta("stop"))
    assert streamed.reasoning == "2+2"


def test_a_stream_and_a_plain_body_of_the_same_answer_are_assembled_alike() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "total_tokens": 11,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    plain = assemble_body(
        json.dumps(
            {
                "model": "m",
                "system_fingerprint": "f",
                "usage": usage,
                "choices": [{"index": 0, "message": {"content": "ab"}, "finish_reason": "stop"}],
            }
        ).encode()
    )
    streamed = stream(
        {"model": "m", "system_fingerprint": "f"} | delta(content="a", role="assistant"),
        delta(content="b"),
        delta("stop"),
        {"choices": [], "usage": usage},
    )
    assert streamed.content_events == (0, 1)
    assert plain.usage == streamed.usage == Usage(9, 2, 11, 4, 1)
    for field in ("text", "finish_reason", "model", "system_fingerprint", "failure", "done"):
        assert getattr(plain, field) == getattr(streamed, field)


def test_a_completion_is_read_by_its_text() -> None:
    assert body(text=" Paris", finish_reason="length").text == " Paris"
    streamed = stream({"choices": [{"index": 0, "text": " Pa", "finish_reason": None}]}, done=False)
    assert streamed.text == " Pa"


def test_other_choices_than_the_first_are_left_out() -> None:
    answer = stream(delta(content="a"), {"choices": [{"index": 1, "delta": {"content": "x"}}]}, delta("stop"))
    assert answer.text == "a"


def test_content_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert body(message={"content": parts}, finish_reason="stop").text == "ab"


def test_parallel_calls_are_assembled_by_their_index() -> None:
    answer = stream(
        call(0, "a", name="f", arguments=""),
        call(1, "b", name="g", arguments='{"y"'),
        call(0, arguments='{"x": 1}'),
        call(1, arguments=": 2}"),
        delta("tool_calls"),
    )
    assert calls_of(answer) == [("a", "f", '{"x": 1}'), ("b", "g", '{"y": 2}')]


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        pytest.param(
            [call(None, "a", name="f", arguments="{"), call(None, None, arguments="}")],
            [("a", "f", "{}")],
            id="no index: the last call goes on",
        ),
        pytest.param(
            [call(None, "a", name="f", arguments="{}"), call(None, "b", name="g", arguments="{}")],
            [("a", "f", "{}"), ("b", "g", "{}")],
            id="no index: a new id opens a call",
        ),
        pytest.param(
            [call(0, "a", name="f", arguments="{}"), call(0, "b", name="g", arguments="{}")],
            [("a", "f", "{}"), ("b", "g", "{}")],
            id="an index used again under another id",
        ),
        pytest.param(
            [call(0, "a", name="f", arguments="{"), call(0, "a", name="f", arguments="}")],
            [("a", "f", "{}")],
            id="id and name sent again",
        ),
        pytest.param(
            [call(0, "a", name="get_", arguments=""), call(0, "", name="time", arguments="{}")],
            [("a", "get_time", "{}")],
            id="a name in fragments, an empty id",
        ),
        pytest.param(
            [call(0, "a", name="f", arguments=None), call(0, None, name=None, arguments="{}")],
            [("a", "f", "{}")],
            id="nulls in continuations",
        ),
        pytest.param([call(0, name="f", arguments="{}")], [(None, "f", "{}")], id="an id never sent"),
        pytest.param([delta(tool_calls=None)], [], id="a null list"),
    ],
)
def test_calls_are_assembled_as_tolerant_clients_do(
    deltas: list[dict[str, Any]], calls: list[tuple[str | None, str, str]]
) -> None:
    assert calls_of(stream(*deltas, delta("tool_calls"))) == calls


def test_plain_calls_are_kept_as_they_came() -> None:
    sent = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "own": 1}]
    assert body(message={"tool_calls": sent}, finish_reason="tool_calls").tool_calls == tuple(sent)


def test_a_token_named_by_its_id_ignores_bytes_that_only_spell_the_name() -> None:
    lie = list(b"token_id:60")
    top = [
        {"token": "token_id:60", "logprob": -0.1, "bytes": lie},
        {"token": "x", "logprob": -3, "bytes": [120]},
    ]
    content = [{"token": "token_id:60", "logprob": -0.1, "bytes": [61], "top_logprobs": top}]
    answer = body(message={"content": "="}, logprobs={"content": content}, finish_reason="stop")
    assert answer.top_logprobs is not None
    (position,) = answer.top_logprobs
    assert (position.sampled.token_id, position.sampled.raw) == (60, b"=")
    assert [(token.token_id, token.raw) for token in position.top] == [(60, None), (None, b"x")]


@pytest.mark.parametrize("field", ["id", "token_id"])
def test_an_explicit_id_identifies_a_token(field: str) -> None:
    content = [{"token": "a", "logprob": -1, field: 7, "top_logprobs": []}]
    answer = body(message={}, logprobs={"content": content}, finish_reason="stop")
    assert answer.top_logprobs is not None
    assert answer.top_logprobs[0].sampled.token_id == 7


@pytest.mark.parametrize("ids", ["1,2", [1, "2"], [1, True], [1, 2.0], [1, -2], [1, 1 << 31], [[1]]])
def test_a_list_that_holds_anything_but_ids_is_none(ids: object) -> None:
    answer = body(message={"content": "x"}, token_ids=ids, prompt_token_ids=ids, finish_reason="stop")
    assert (answer.token_ids, answer.prompt_token_ids, answer.failure) == (None, None, None)


def test_ids_listed_apart_name_the_sampled_tokens() -> None:
    content = [
        {"token": "a", "logprob": -1, "top_logprobs": []},
        {"token": "b", "logprob": -1, "top_logprobs": []},
    ]
    answer = body(message={}, logprobs={"content": content}, token_ids=[5, 6], finish_reason="stop")
    assert answer.top_logprobs is not None
    assert [position.sampled.token_id for position in answer.top_logprobs] == [5, 6]


def test_a_null_logprob_is_the_nan_it_was_made_from() -> None:
    content = [{"token": "a", "logprob": None, "top_logprobs": []}]
    answer = body(message={}, logprobs={"content": content}, finish_reason="stop")
    assert answer.top_logprobs is not None
    assert math.isnan(answer.top_logprobs[0].sampled.logprob)


def test_no_logprobs_are_none_and_not_an_empty_list() -> None:
    assert body(message={"content": "a"}, logprobs=None, finish_reason="stop").top_logprobs is None


def test_an_echoed_prompt_is_parted_from_the_answer_by_the_usage() -> None:
    logprobs = {
        "tokens": ["The", " cap", " Paris"],
        "token_logprobs": [None, -2.0, -0.5],
        "top_logprobs": [None, {" cap": -2.0, " a": -1.0}, {" Paris": -0.5}],
    }
    value = {
        "choices": [{"index": 0, "text": "The cap Paris", "logprobs": logprobs, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 2, "completion_tokens": 1},
    }
    answer = assemble_body(json.dumps(value).encode(), echo=True)
    assert answer.prompt_logprobs is not None
    assert answer.prompt_logprobs[0] is None
    assert answer.prompt_logprobs[1] is not None
    assert answer.prompt_logprobs[1].sampled.token == " cap"
    assert answer.top_logprobs is not None
    assert [position.sampled.token for position in answer.top_logprobs] == [" Paris"]


def test_a_stream_with_done_and_without_finish_reason_is_no_failure_and_stays_without() -> None:
    answer = stream(delta(content="a"))
    assert (answer.failure, answer.finish_reason, answer.done) == (None, None, True)


def test_a_stream_with_finish_reason_and_without_done_is_whole() -> None:
    answer = stream(delta("stop", content="a"), done=False)
    assert (answer.failure, answer.done) == (None, False)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], FailureKind.TRUNCATED),
        ([delta(content="a")], FailureKind.TRUNCATED),
        ([delta(content="a"), '{"choices": [{"ind'], FailureKind.TRUNCATED),
    ],
)
def test_a_stream_that_just_ends_is_truncated(values: list[Any], kind: FailureKind) -> None:
    answer = stream(*values, done=False)
    assert answer.failure is not None
    assert answer.failure.kind is kind


def test_an_empty_stream_with_done_has_no_choices() -> None:
    answer = stream()
    assert answer.failure is not None
    assert answer.failure.kind is FailureKind.BAD_SHAPE


def test_nan_in_one_event_is_a_failure_that_keeps_all_of_the_answer() -> None:
    text = (
        '{"choices": [{"index": 0, "delta": {"content": "!"}, "logprobs": {"content": [{"logprob": NaN}]}}]}'
    )
    answer = stream(delta(content="a"), text, delta("stop", content="b"))
    assert answer.failure is not None
    assert answer.failure.kind is FailureKind.NOT_JSON
    assert (answer.text, answer.finish_reason) == ("a!b", "stop")


@given(st.data())
def test_the_answer_does_not_depend_on_how_the_bytes_were_split(data: st.DataObject) -> None:
    values = [delta(content="学"), call(0, "a", name="f", arguments='{"ü":'), call(0, arguments="1}")]
    text = "".join(
        f"data: {json.dumps(value, ensure_ascii=False)}\r\n\r\n" for value in [*values, delta("stop")]
    )
    stream_bytes = (text + "data: [DONE]\r\n\r\n").encode()
    borders = sorted(data.draw(st.lists(st.integers(0, len(stream_bytes)), max_size=10)))
    decoder = SSEDecoder()
    events = [
        event
        for start, end in zip([0, *borders], [*borders, len(stream_bytes)], strict=True)
        for event in decoder.feed(stream_bytes[start:end])
    ]
    answer = assemble_stream(events + decoder.close())
    assert answer.text == "学"
    assert calls_of(answer) == [("a", "f", '{"ü":1}')]
    assert answer.done


@given(ANYTHING)
def test_no_json_whatever_makes_assembly_raise(value: Any) -> None:
    text = json.dumps(value)
    assert isinstance(assemble_body(text.encode()), Answer)
    assert isinstance(assemble_stream([Event(text)]), Answer)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"error": {"message": "a\n  b"}}, "a b"),
        ({"error": "plain"}, "plain"),
        ({"error": "\x1b[31mred\x00"}, "[31mred"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"msg": "field required", "input": {"messages": "a secret prompt"}}]}, "field required"),
        ({"message": "direct"}, "direct"),
        ({"error": {"message": "x" * 500}}, "x" * 300),
        ({"error": None}, ""),
        ([], ""),
    ],
)
def test_the_message_of_an_error_is_found_in_every_usual_shape(value: Any, text: str) -> None:
    assert error_text(value) == text


def test_json_is_read_strictly() -> None:
    assert parse_json(b' {"a": 1} ') == ({"a": 1}, None)
    value, failure = parse_json("[Infinity]")
    assert value == [math.inf]
    assert failure is not None
    assert "NaN or Infinity" in failure.message
    _, failure = parse_json(b'{"a": }')
    assert failure is not None
    assert failure.kind is FailureKind.NOT_JSON


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("*_chat*.json")) + sorted(GOLDEN.glob("*_completions*.json"))
)
def test_what_real_engines_answer_is_read_whole(path: Path) -> None:
    recorded = json.loads(path.read_text())
    asked, response = recorded["request"]["body"], recorded["response"]
    if response["status"] != 200:
        assert error_text(response["json"])
        return
    if "text" in response:
        decoder = SSEDecoder()
        answer = assemble_stream(decoder.feed(response["text"].encode()) + decoder.close())
    else:
        answer = assemble_body(json.dumps(response["json"]).encode(), echo=asked.get("echo", False))
    assert answer.failure is None
    assert answer.finish_reason in {"stop", "length"}
    assert answer.usage is None or answer.usage.prompt_tokens
    if asked.get("logprobs"):
        assert answer.top_logprobs
        assert all(position.sampled.logprob <= 0.0 for position in answer.top_logprobs)
    if asked.get("return_token_ids"):
        assert answer.prompt_token_ids
        assert answer.token_ids
        assert answer.top_logprobs is not None
        if len(answer.token_ids) == len(answer.top_logprobs):
            assert [p.sampled.token_id for p in answer.top_logprobs] == list(answer.token_ids)
    if asked.get("prompt_logprobs"):
        assert answer.prompt_logprobs is not None
        assert answer.prompt_token_ids is not None
        scored = [p and p.sampled.token_id for p in answer.prompt_logprobs]
        assert scored == [None, *answer.prompt_token_ids[1:]]
