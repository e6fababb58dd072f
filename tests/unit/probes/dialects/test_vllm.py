"""vLLM's shapes, as version 0.32 sent them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probes.prompt_ids import show
from tests.unit.probes.dialects.recorded import (
    CHAT,
    COMPLETIONS,
    HELLO,
    TOOL,
    RecordedEndpoint,
    chat_answer,
    completion_answer,
)
from tokenizer_checks.templates.chat import Chat

IDS = [1, 4093, 2]
TEXT = "<|im_start|>hi<|im_end|>"
CHUNK = {"id": "a", "object": "chat.completion.chunk", "model": "m"}
STREAM: list[dict[str, Any]] = [
    CHUNK
    | {
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
        "prompt_token_ids": IDS,
        "prompt_text": TEXT,
    },
    CHUNK
    | {
        "choices": [
            {"index": 0, "delta": {"content": "Hello"}, "finish_reason": "length", "token_ids": [19556]}
        ]
    },
    CHUNK | {"choices": [], "usage": {"prompt_tokens": 3, "total_tokens": 4, "completion_tokens": 1}},
]
RESPONSE = {
    "id": "resp_a",
    "object": "response",
    "status": "incomplete",
    "usage": {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4},
    "input_messages": [{"message": TEXT, "tokens": IDS, "type": "raw_message_tokens"}],
}
ANSWERS: dict[str, Any] = {
    CHAT: chat_answer(prompt_token_ids=IDS, prompt_text=TEXT, prompt_logprobs=None),
    f"{CHAT} stream": STREAM,
    "/v1/responses": RESPONSE,
    "/tokenize": {"count": 3, "max_model_len": 4096, "tokens": IDS, "token_strs": None},
    f"{CHAT}/render": {"request_id": "a", "token_ids": IDS, "features": None},
    COMPLETIONS: completion_answer(prompt_token_ids=IDS, token_ids=[9]),
}


async def test_every_way_shows_the_ids_where_vllm_puts_them() -> None:
    endpoint = RecordedEndpoint("vllm", ANSWERS)
    shown = await show(endpoint, HELLO)
    assert [(one.way, one.used) for one in shown] == [
        ("chat", True),
        ("chat_stream", True),
        ("responses", True),
        ("tokenize", False),
        ("render", False),
        ("completions", False),
        ("completions_text", False),
    ]
    assert {one.ids for one in shown} == {tuple(IDS)}
    assert [one.count for one in shown] == [3, 3, 3, 3, None, 3, 3]
    assert [one.text for one in shown] == [TEXT, TEXT, TEXT, None, None, None, None]
    assert [one.problem for one in shown] == [None] * 7
    assert shown[0].exchange is not None
    assert shown[0].exchange.prompt_token_ids == tuple(IDS)


async def test_each_way_asks_for_one_token_in_its_own_words() -> None:
    endpoint = RecordedEndpoint("vllm", ANSWERS)
    await show(endpoint, replace(HELLO, options={"thinking": True}))
    chat = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    asked = {"return_token_ids": True, "temperature": 0.0, "max_tokens": 1}
    kwargs = {"chat_template_kwargs": {"thinking": True}}
    text = {"return_prompt_text": True}
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    assert endpoint.sent == [
        (CHAT, chat | asked | text | kwargs),
        (CHAT, chat | asked | text | kwargs | streamed),
        (
            "/v1/responses",
            {
                "model": "m",
                "input": chat["messages"],
                "max_output_tokens": 1,
                "temperature": 0.0,
                "store": False,
                "enable_response_messages": True,
            }
            | kwargs,
        ),
        ("/tokenize", chat | kwargs),
        (f"{CHAT}/render", chat | kwargs),
        (COMPLETIONS, {"model": "m", "prompt": IDS} | asked),
        (COMPLETIONS, {"model": "m", "prompt": TEXT, "add_special_tokens": False} | asked),
    ]


async def test_an_open_last_message_goes_to_the_routes_that_take_one() -> None:
    chat = Chat((*HELLO.messages, {"role": "assistant", "content": "Yes"}), continue_final=True)
    endpoint = RecordedEndpoint("vllm", ANSWERS)
    by_way = {one.way: one for one in await show(endpoint, chat, ways=("chat", "responses", "tokenize"))}
    assert by_way["responses"].problem == "can't ask for the last message to be left open"
    assert [path for path, _ in endpoint.sent] == [CHAT, "/tokenize"]
    for _, body in endpoint.sent:
        assert (body["add_generation_prompt"], body["continue_final_message"]) == (False, True)


async def test_tools_travel_as_each_route_spells_them() -> None:
    endpoint = RecordedEndpoint("vllm", ANSWERS)
    await show(endpoint, Chat(HELLO.messages, (TOOL,)), ways=("chat", "responses", "tokenize"))
    chat, responses, tokenize = (body["tools"] for _, body in endpoint.sent)
    assert chat == tokenize == [TOOL]
    assert responses == [{"type": "function", **TOOL["function"]}]


async def test_typed_content_is_not_sent_to_the_route_that_types_it_otherwise() -> None:
    endpoint = RecordedEndpoint("vllm", ANSWERS)
    chat = Chat(({"role": "user", "content": [{"type": "text", "text": "hi"}]},))
    (one,) = await show(endpoint, chat, ways=("responses",))
    assert one.problem == "can't send calls, reasoning or typed content in the chat's own spelling"
    assert endpoint.sent == []


@pytest.mark.parametrize("status", [400, 403, 404, 500])
async def test_a_route_that_is_missing_or_refused_leaves_the_others(status: int) -> None:
    endpoint = RecordedEndpoint("vllm", {**ANSWERS, f"{CHAT}/render": status, "/v1/responses": status})
    shown = {one.way: one for one in await show(endpoint, HELLO)}
    assert {way for way, one in shown.items() if one.ids is None} == {"render", "responses"}
    assert "not here" in (shown["render"].problem or "")


async def test_a_server_that_ignores_the_fields_shows_its_count() -> None:
    endpoint = RecordedEndpoint("vllm", {CHAT: chat_answer()})
    chat, completions = await show(endpoint, HELLO, ways=("chat", "completions"))
    assert (chat.ids, chat.count, chat.problem) == (None, 3, "the answer holds no token IDs")
    assert completions.problem == "no other way showed ids to send"
    assert len(endpoint.sent) == 1


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ("1 4093 2", "text where a list"),
        (["token_id:1"], "text where a token ID"),
        ([1, -4], "-4 at index 1"),
        ([[1], [2]], "a list where a token ID"),
        ([1, 4.5], "a fractional number"),
        ([1, 200_000], "200000 at index 1"),
    ],
)
async def test_junk_in_the_place_of_ids_is_named_and_the_count_stays(ids: Any, said: str) -> None:
    endpoint = RecordedEndpoint(
        "vllm", {CHAT: chat_answer(prompt_token_ids=ids), "/tokenize": {"tokens": ids}}
    )
    shown = await show(endpoint, HELLO, ways=("chat", "tokenize"), vocabulary_size=50_000)
    assert [one.ids for one in shown] == [None, None]
    assert [one.count for one in shown] == [3, None]
    assert all(said in (one.problem or "") for one in shown)


async def test_two_lists_in_one_stream_that_differ_are_none() -> None:
    twice = [STREAM[0], STREAM[1] | {"prompt_token_ids": [1, 2]}, STREAM[2]]
    (one,) = await show(RecordedEndpoint("vllm", {f"{CHAT} stream": twice}), HELLO, ways=("chat_stream",))
    assert (one.ids, one.count) == (None, 3)
    assert one.problem == "the answer holds two lists of prompt token IDs that differ"


@pytest.mark.parametrize("body", [[], "ids", 7, {"tokens": None}, {"tokens": {}}])
async def test_a_route_that_answers_something_else_is_no_error(body: Any) -> None:
    (one,) = await show(RecordedEndpoint("vllm", {"/tokenize": body}), HELLO, ways=("tokenize",))
    assert one.ids is None
    assert one.problem is not None
