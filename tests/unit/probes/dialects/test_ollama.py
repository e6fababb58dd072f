"""Ollama's shapes, as its source says them."""

from __future__ import annotations

from typing import Any

import pytest

from probes.prompt_ids import show
from tests.unit.probes.dialects.recorded import CHAT, HELLO, TOOL, RecordedEndpoint, chat_answer
from tokenizer_checks.templates.chat import Chat

TEXT = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def generated(context: Any, asked: Any = 3, answered: Any = 1) -> dict[str, Any]:
    counts = {"prompt_eval_count": asked, "eval_count": answered}
    return {"model": "m", "response": "x", "done": True, "context": context, **counts}


async def test_text_comes_from_the_render_option_and_ids_from_the_context() -> None:
    chat = Chat(({"role": "system", "content": "Be brief."}, *HELLO.messages))
    endpoint = RecordedEndpoint("ollama", {CHAT: chat_answer(), "/api/generate": generated([1, 4093, 2, 9])})
    counted, rendered, question = await show(endpoint, chat)
    assert (counted.ids, counted.count) == (None, 3)
    assert rendered.problem == "this server shows the prompt's text, and no IDs"
    assert (question.used, question.ids, question.count) == (False, (1, 4093, 2), 3)
    assert endpoint.sent[1][1]["_debug_render_only"] is True
    assert endpoint.sent[2][1] == {
        "model": "m",
        "prompt": "hi",
        "system": "Be brief.",
        "stream": False,
        "options": {"num_predict": 1, "temperature": 0.0},
    }


async def test_what_was_rendered_is_shown_as_text() -> None:
    answer = {"model": "m", "choices": [], "_debug_info": {"rendered_template": TEXT, "image_count": 0}}
    (one,) = await show(RecordedEndpoint("ollama", {CHAT: answer}), HELLO, ways=("render",))
    assert (one.used, one.ids, one.text) == (False, None, TEXT)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (generated([1, 4093, 2]), "`context` is not as long as prompt and answer were counted"),
        (generated([1, 4093, 2, 9], asked=None), "`context` is not as long"),
        (generated([1, 4093, 2, 9], asked="3"), "`context` is not as long"),
        (generated([1, "4093", 2, 9]), "text where a token ID was due, at index 1"),
        (generated(None), "the answer holds no token IDs"),
        (generated("1 2 3 4"), "text where a list of token IDs was due"),
        ({}, "the answer holds no token IDs"),
    ],
)
async def test_a_context_whose_border_is_unknown_shows_no_ids(answer: dict[str, Any], said: str) -> None:
    (one,) = await show(RecordedEndpoint("ollama", {"/api/generate": answer}), HELLO, ways=("generate",))
    assert one.ids is None
    assert said in (one.problem or "")


@pytest.mark.parametrize(
    ("chat", "said"),
    [
        (Chat(HELLO.messages * 2), "this route asks one question"),
        (Chat(HELLO.messages, (TOOL,)), "can't send tools"),
        (
            Chat(HELLO.messages, generation_prompt=False),
            "can't ask for a prompt without the generation prompt",
        ),
    ],
)
async def test_the_question_route_takes_one_plain_question(chat: Chat, said: str) -> None:
    endpoint = RecordedEndpoint("ollama", {"/api/generate": generated([1, 2])})
    (one,) = await show(endpoint, chat, ways=("generate",))
    assert said in (one.problem or "")
    assert endpoint.sent == []
