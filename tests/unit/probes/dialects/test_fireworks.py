"""Fireworks' shapes, as its API reference says them."""

from __future__ import annotations

import pytest

from probes.prompt_ids import show
from tests.unit.probes.dialects.recorded import CHAT, HELLO, RecordedEndpoint, chat_answer, in_choice

RAW = {
    "prompt_fragments": ["<|im_start|>user\n", "hi<|im_end|>"],
    "prompt_token_ids": [1, 4093, 2],
    "completion": "Hello",
    "completion_token_ids": [9],
}


async def test_ids_stand_beside_the_choices_and_in_the_raw_output() -> None:
    answer = in_choice(chat_answer(prompt_token_ids=[1, 4093, 2]), raw_output=RAW, token_ids=[9])
    endpoint = RecordedEndpoint("fireworks", {CHAT: answer})
    (one,) = await show(endpoint, HELLO, ways=("chat",))
    assert (one.used, one.ids, one.count, one.problem) == (True, (1, 4093, 2), 3, None)
    assert one.text == "<|im_start|>user\nhi<|im_end|>"
    ((_, body),) = endpoint.sent
    assert (body["return_token_ids"], body["raw_output"]) == (True, True)


@pytest.mark.parametrize("fields", [{"prompt_token_ids": [1, 4093, 2]}, {}])
async def test_one_place_is_enough(fields: dict[str, list[int]]) -> None:
    answer = chat_answer(**fields) if fields else in_choice(chat_answer(), raw_output=RAW)
    (one,) = await show(RecordedEndpoint("fireworks", {CHAT: answer}), HELLO, ways=("chat",))
    assert one.ids == (1, 4093, 2)


async def test_two_places_that_differ_show_none() -> None:
    answer = in_choice(chat_answer(prompt_token_ids=[1, 2]), raw_output=RAW)
    (one,) = await show(RecordedEndpoint("fireworks", {CHAT: answer}), HELLO, ways=("chat",))
    assert (one.ids, one.count) == (None, 3)
    assert one.problem == "the answer holds two lists of prompt token IDs that differ"
