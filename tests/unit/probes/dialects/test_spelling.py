"""A chat goes out as it is meant, or not at all."""

from __future__ import annotations

import pytest

from probes.dialects.spelling import Spelling
from tests.unit.probes.dialects.recorded import TOOL
from tokenizer_checks.templates.chat import Chat

USER = {"role": "user", "content": "hi"}
PREFILL = {"role": "assistant", "content": "Yes"}
PLAIN = Chat((USER,))
OPEN = Chat((USER, PREFILL), continue_final=True)
CLOSED = Chat((USER, PREFILL))
BARE = Chat((USER,), generation_prompt=False)
MOODY = Chat((USER,), options={"enable_thinking": False})

FULL = Spelling("kwargs", "add_generation_prompt", "continue_final_message")
NOTHING = Spelling()
UNSURE = Spelling(continues_by_itself=None)
BY_ITSELF = Spelling(continues_by_itself=True)


@pytest.mark.parametrize(
    ("spelling", "chat", "fields"),
    [
        (FULL, PLAIN, {}),
        (FULL, BARE, {"add_generation_prompt": False}),
        (FULL, OPEN, {"add_generation_prompt": False, "continue_final_message": True}),
        (FULL, CLOSED, {}),
        (FULL, MOODY, {"kwargs": {"enable_thinking": False}}),
        (Spelling(continue_final="open"), OPEN, {"open": True}),
        (BY_ITSELF, OPEN, {}),
        (NOTHING, PLAIN, {}),
        (UNSURE, PLAIN, {}),
        (NOTHING, CLOSED, {}),
    ],
)
def test_what_a_chat_asks_for_has_the_route_s_own_name(
    spelling: Spelling, chat: Chat, fields: dict[str, object]
) -> None:
    assert spelling.refusal(chat) is None
    assert spelling.fields(chat) == fields


@pytest.mark.parametrize(
    ("spelling", "chat", "said"),
    [
        (NOTHING, BARE, "can't ask for a prompt without the generation prompt"),
        (NOTHING, OPEN, "can't ask for the last message to be left open"),
        (NOTHING, MOODY, "can't pass options to the template"),
        (BY_ITSELF, CLOSED, "can't ask for a last message of the assistant to be closed"),
        (BY_ITSELF, Chat((USER,), continue_final=True), "can't ask for the last message to be left open"),
        (UNSURE, CLOSED, "can't say whether a last message of the assistant"),
        (UNSURE, OPEN, "can't say whether a last message of the assistant"),
        (Spelling(tools=False), Chat((USER,), (TOOL,)), "can't send tools"),
        (
            Spelling(plain_messages=True),
            Chat(({**USER, "name": "x"},)),
            "can't send calls, reasoning or typed content",
        ),
        (
            Spelling(plain_messages=True),
            Chat(({"role": "user", "content": []},)),
            "can't send calls, reasoning or typed content",
        ),
    ],
)
def test_what_a_route_cannot_express_is_refused_in_words(spelling: Spelling, chat: Chat, said: str) -> None:
    refused = spelling.refusal(chat)
    assert refused is not None
    assert said in refused
