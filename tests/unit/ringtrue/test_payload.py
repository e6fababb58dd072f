from __future__ import annotations

import pytest

from ringtrue.payload import from_body, path_of, to_body
from ringtrue.records import Request, Sampling

CHAT = Request(
    id="c",
    messages=({"role": "user", "content": "hi"},),
    tools=({"type": "function", "function": {"name": "f"}},),
    tool_choice="auto",
    response_format={"type": "json_object"},
    sampling=Sampling(temperature=0.5, top_p=0.9, max_tokens=7, seed=3, stop=("x",)),
    logprobs=20,
    stream=True,
    extra={"prompt_cache_key": "k"},
)
TEXT = Request(
    id="t", prompt="x", logprobs=5, echo=True, sampling=Sampling(temperature=None, max_tokens=None)
)
IDS = Request(id="i", prompt_token_ids=(1, 2), sampling=Sampling(max_tokens=1))


def test_a_chat_request_is_spelled_as_the_api_does() -> None:
    assert to_body(CHAT, "m") == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": "auto",
        "response_format": {"type": "json_object"},
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
        "seed": 3,
        "stop": ["x"],
        "logprobs": True,
        "top_logprobs": 20,
        "stream": True,
        "stream_options": {"include_usage": True},
        "prompt_cache_key": "k",
    }


def test_what_is_not_set_is_not_sent() -> None:
    assert to_body(TEXT, "m") == {"model": "m", "prompt": "x", "logprobs": 5, "echo": True}
    assert to_body(IDS, "m") == {"model": "m", "prompt": [1, 2], "temperature": 0.0, "max_tokens": 1}


def test_k_of_zero_asks_for_the_sampled_token_alone() -> None:
    assert to_body(Request(id="z", messages=(), logprobs=0), "m")["top_logprobs"] == 0


@pytest.mark.parametrize("request_", [CHAT, TEXT, IDS], ids=["chat", "text", "ids"])
def test_a_body_reads_back_as_the_request_that_made_it(request_: Request) -> None:
    assert from_body(request_.id, to_body(request_, "m")) == request_


def test_a_foreign_body_keeps_what_has_no_field_here() -> None:
    body = {"model": "m", "messages": [], "stop": "x", "max_completion_tokens": 9, "n": 2, "stream": False}
    request = from_body("f", body)
    assert request.sampling == Sampling(temperature=None, max_tokens=9, stop=("x",))
    assert request.extra == {"n": 2}


def test_a_request_goes_to_the_route_of_its_prompt() -> None:
    assert [path_of(request) for request in (CHAT, TEXT, IDS)] == [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/completions",
    ]
