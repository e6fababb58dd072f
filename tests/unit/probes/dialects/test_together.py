"""Together's shape, as its published OpenAPI file says it."""

from __future__ import annotations

from typing import Any

import pytest

from probes.prompt_ids import show
from tests.unit.probes.dialects.recorded import CHAT, HELLO, RecordedEndpoint, chat_answer, in_choice


def echoed(ids: Any) -> dict[str, Any]:
    logprobs = {"tokens": ["<s>", "hi", "x"], "token_logprobs": [None, -1.0, -2.0], "token_ids": ids}
    answered = {"tokens": ["He"], "token_logprobs": [-0.1], "token_ids": [9]}
    return in_choice(chat_answer(prompt=[{"text": "<s>hi", "logprobs": logprobs}]), logprobs=answered)


async def test_the_echoed_prompt_brings_its_ids() -> None:
    endpoint = RecordedEndpoint("together", {CHAT: echoed([1, 4093, 2])})
    (one,) = await show(endpoint, HELLO)
    assert (one.way, one.used, one.ids, one.count, one.text) == ("chat", True, (1, 4093, 2), 3, "<s>hi")
    ((_, body),) = endpoint.sent
    assert (body["echo"], body["logprobs"], "top_logprobs" in body) == (True, 1, False)


@pytest.mark.parametrize("ids", [None, [1.0, 4093.0, 2.0], ["1"]])
async def test_without_whole_numbers_there_are_no_ids(ids: Any) -> None:
    (one,) = await show(RecordedEndpoint("together", {CHAT: echoed(ids)}), HELLO)
    assert (one.ids, one.count) == (None, 3)
    assert one.problem is not None


async def test_without_echo_the_count_is_left() -> None:
    (one,) = await show(RecordedEndpoint("together", {CHAT: chat_answer(prompt=[])}), HELLO)
    assert (one.ids, one.count, one.problem) == (None, 3, "the answer holds no token IDs")
