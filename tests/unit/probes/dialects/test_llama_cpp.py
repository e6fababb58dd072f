"""llama.cpp's shapes as its source says them, and llama-cpp-python's, which lacks them."""

from __future__ import annotations

from typing import Any

import pytest

from probes.prompt_ids import best, show, tokenize
from tests.unit.probes.dialects.recorded import CHAT, HELLO, TOOL, RecordedEndpoint, chat_answer
from tokenizer_checks.templates.chat import Chat

IDS = [1, 4093, 2]
TEXT = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
ANSWERS: dict[str, Any] = {
    CHAT: chat_answer(__verbose={"prompt": TEXT, "tokens_evaluated": 3, "content": "Hello"}),
    "/apply-template": {"prompt": TEXT},
    "/tokenize": {"tokens": IDS},
}


async def test_the_answer_shows_text_and_count_and_two_routes_show_ids() -> None:
    endpoint = RecordedEndpoint("llama_cpp", ANSWERS)
    shown = await show(endpoint, HELLO)
    chat, applied = shown
    assert (chat.used, chat.ids, chat.count, chat.text) == (True, None, 3, TEXT)
    assert chat.problem == "this server shows the prompt's text and count in its answer, and no IDs"
    assert (applied.used, applied.ids, applied.text, applied.problem) == (False, tuple(IDS), TEXT, None)
    assert best(shown) is applied
    assert [path for path, _ in endpoint.sent] == [CHAT, "/apply-template", "/tokenize"]
    assert endpoint.sent[0][1]["verbose"] is True
    assert endpoint.sent[2][1] == {"content": TEXT, "add_special": True, "parse_special": True}


async def test_llama_cpp_python_has_no_such_route_and_its_dialect_is_named() -> None:
    shown = await show(RecordedEndpoint("llama_cpp", {CHAT: chat_answer()}), HELLO)
    chat, applied = shown
    assert (chat.ids, chat.count, chat.text) == (None, 3, None)
    assert "its dialect is llama_cpp_python" in (applied.problem or "")
    assert best(shown) is chat


async def test_llama_cpp_python_counts_and_sends_no_field_that_it_would_ignore() -> None:
    endpoint = RecordedEndpoint("llama_cpp_python", {CHAT: chat_answer()})
    (one,) = await show(endpoint, HELLO)
    assert (one.ids, one.count) == (None, 3)
    assert one.problem == "this server shows a count of prompt tokens, and no IDs"
    ((_, body),) = endpoint.sent
    assert body.keys() == {"model", "messages", "temperature", "max_tokens"}
    for chat in (Chat(HELLO.messages, options={"a": 1}), Chat(HELLO.messages, continue_final=True)):
        assert (await show(endpoint, chat))[0].problem is not None
    assert len(endpoint.sent) == 1


async def test_llama_cpp_python_tokenizes_text_under_another_name() -> None:
    endpoint = RecordedEndpoint("llama_cpp_python", {"/extras/tokenize": {"tokens": IDS}})
    assert (await tokenize(endpoint, TEXT)).ids == tuple(IDS)
    assert endpoint.sent == [("/extras/tokenize", {"model": "m", "input": TEXT})]


async def test_tools_and_options_go_to_the_template() -> None:
    chat = Chat(HELLO.messages, (TOOL,), generation_prompt=False, options={"enable_thinking": False})
    endpoint = RecordedEndpoint("llama_cpp", ANSWERS)
    await show(endpoint, chat, ways=("apply_template",))
    assert endpoint.sent[0] == (
        "/apply-template",
        {
            "model": "m",
            "messages": list(HELLO.messages),
            "tools": [TOOL],
            "chat_template_kwargs": {"enable_thinking": False},
            "add_generation_prompt": False,
        },
    )


async def test_a_closed_last_answer_is_not_asked_for() -> None:
    endpoint = RecordedEndpoint("llama_cpp", ANSWERS)
    closed = Chat((*HELLO.messages, {"role": "assistant", "content": "Yes"}))
    shown = await show(endpoint, closed)
    assert {one.problem for one in shown} == {"can't ask for a last message of the assistant to be closed"}
    assert endpoint.sent == []


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"/apply-template": {}}, "/apply-template gave no text under `prompt`"),
        ({"/apply-template": {"prompt": [1]}}, "/apply-template gave no text"),
        ({"/apply-template": []}, "/apply-template gave no text"),
        ({"/apply-template": 500}, "not here"),
        ({"/tokenize": 500}, "not here"),
        ({"/tokenize": {}}, "the answer holds no token IDs"),
        ({"/tokenize": {"tokens": [{"id": 1, "piece": "x"}]}}, "an object where a token ID was due"),
    ],
)
async def test_what_comes_instead_is_the_problem(answers: dict[str, Any], said: str) -> None:
    endpoint = RecordedEndpoint("llama_cpp", ANSWERS | answers)
    (one,) = await show(endpoint, HELLO, ways=("apply_template",))
    assert one.ids is None
    assert said in (one.problem or "")
