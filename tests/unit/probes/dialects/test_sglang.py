"""SGLang's shapes, as its source says them."""

from __future__ import annotations

import pytest

from probes.dialects import dialect_named
from probes.prompt_ids import show
from ringtrue.records import Request, Sampling
from tests.unit.probes.dialects.recorded import (
    CHAT,
    COMPLETIONS,
    HELLO,
    RecordedEndpoint,
    chat_answer,
    completion_answer,
    in_choice,
)
from tokenizer_checks.templates.chat import Chat

IDS = [1, 4093, 2]
GENERATED = {
    "text": "Hello",
    "output_ids": [19556],
    "meta_info": {
        "prompt_tokens": 3,
        "completion_tokens": 1,
        "input_token_logprobs": [[None, 1, None], [-2.5, 4093, None], [-0.5, 2, None]],
    },
}
ANSWERS = {
    CHAT: in_choice(chat_answer(), prompt_token_ids=IDS),
    "/tokenize": {"tokens": IDS, "count": 3, "max_model_len": 8192},
    "/generate": GENERATED,
    COMPLETIONS: completion_answer(prompt_token_ids=IDS, token_ids=[9]),
}


async def test_every_way_shows_the_ids_where_sglang_puts_them() -> None:
    endpoint = RecordedEndpoint("sglang", ANSWERS)
    shown = await show(endpoint, HELLO)
    assert [(one.way, one.used) for one in shown] == [
        ("chat", True),
        ("tokenize", False),
        ("generate", False),
        ("completions", False),
    ]
    assert {(one.ids, one.count, one.problem) for one in shown} == {(tuple(IDS), 3, None)}
    paths, bodies = zip(*endpoint.sent, strict=True)
    assert paths == (CHAT, "/tokenize", "/generate", COMPLETIONS)
    assert bodies[0]["return_prompt_token_ids"] is True
    assert "return_token_ids" not in bodies[0]
    assert bodies[2]["input_ids"] == IDS
    assert (bodies[2]["return_logprob"], bodies[2]["logprob_start_len"]) == (True, 0)
    assert bodies[3]["return_token_ids"] is True


def test_a_chat_that_streams_is_not_asked_for_ids() -> None:
    body = dialect_named("sglang").body
    one = Sampling(max_tokens=1)
    chat = Request("r", messages=HELLO.messages, sampling=one, stream=True, return_token_ids=True)
    assert not {"return_prompt_token_ids", "return_token_ids"} & body(chat, "m").keys()
    text = Request("r", prompt="x", sampling=one, stream=True, return_token_ids=True)
    assert body(text, "m")["return_token_ids"] is True


async def test_a_prompt_without_generation_prompt_is_asked_of_tokenize_alone() -> None:
    endpoint = RecordedEndpoint("sglang", ANSWERS)
    shown = await show(endpoint, Chat(HELLO.messages, generation_prompt=False), ways=("chat", "tokenize"))
    assert shown[0].problem == "can't ask for a prompt without the generation prompt"
    assert shown[1].ids == tuple(IDS)
    assert [(path, body["add_generation_prompt"]) for path, body in endpoint.sent] == [("/tokenize", False)]


@pytest.mark.parametrize("entries", [[[None, "1", None]], [[None]], [1, 2], "1", [{"id": 1}]])
async def test_logprobs_without_ids_show_none(entries: object) -> None:
    meta = {"meta_info": {"prompt_tokens": 3, "input_token_logprobs": entries}}
    endpoint = RecordedEndpoint("sglang", {**ANSWERS, "/generate": meta})
    one = (await show(endpoint, HELLO, ways=("chat", "generate")))[1]
    assert (one.ids, one.count) == (None, 3)
    assert one.problem is not None
