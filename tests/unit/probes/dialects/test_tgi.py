"""TGI's shapes, as its source says them."""

from __future__ import annotations

from typing import Any

from probes.prompt_ids import best, invariants, show
from tests.unit.probes.dialects.recorded import CHAT, HELLO, RecordedEndpoint, chat_answer
from tokenizer_checks.templates.chat import Chat

TEXT = "<s>[INST] hi [/INST]"
TOKENS = [
    {"id": 1, "text": "<s>", "start": 0, "stop": 3},
    {"id": 4093, "text": "hi", "start": 3, "stop": 5},
    {"id": 2, "text": "x", "start": 5, "stop": 6},
]


def prefilled(*ids: object) -> dict[str, Any]:
    prefill = [{"id": id_, "text": "?", "logprob": None} for id_ in ids]
    details = {"finish_reason": "length", "generated_tokens": 1, "prefill": prefill, "tokens": []}
    return {"generated_text": "x", "details": details}


def answers(generated: dict[str, Any]) -> dict[str, Any]:
    return {
        CHAT: chat_answer(),
        "/chat_tokenize": {"tokenize_response": TOKENS, "templated_text": TEXT},
        "/generate": generated,
    }


async def test_the_chat_counts_and_routes_of_its_own_show_ids() -> None:
    endpoint = RecordedEndpoint("tgi", answers(prefilled(1, 4093, 2)))
    shown = await show(endpoint, HELLO)
    chat, tokenized, generated = shown
    assert (chat.ids, chat.count) == (None, 3)
    assert (tokenized.used, tokenized.ids, tokenized.text) == (False, (1, 4093, 2), TEXT)
    assert (generated.used, generated.ids, generated.problem) == (False, (1, 4093, 2), None)
    assert best(shown) is tokenized
    assert [relation.kept for relation in invariants(shown)] == [True, True, True, None]
    assert endpoint.sent[2] == (
        "/generate",
        {
            "inputs": TEXT,
            "parameters": {"details": True, "decoder_input_details": True, "max_new_tokens": 1},
        },
    )


async def test_the_bos_that_generate_adds_to_any_text_is_no_fault_of_the_chat() -> None:
    shown = await show(RecordedEndpoint("tgi", answers(prefilled(1, 1, 4093, 2))), HELLO)
    assert shown[2].ids is None
    assert "this route puts a second BOS before text" in (shown[2].problem or "")
    assert all(relation.kept is not False for relation in invariants(shown))


async def test_other_ids_of_generate_are_a_difference() -> None:
    shown = await show(RecordedEndpoint("tgi", answers(prefilled(1, 7, 4093, 2))), HELLO)
    broken = [relation.name for relation in invariants(shown) if relation.kept is False]
    assert broken == ["count", "routes"]


async def test_without_text_generate_is_not_asked_and_options_cannot_be() -> None:
    endpoint = RecordedEndpoint("tgi", {CHAT: chat_answer()})
    shown = await show(endpoint, HELLO)
    assert shown[2].problem == "no other way showed text to send"
    (one,) = await show(endpoint, Chat(HELLO.messages, options={"a": 1}), ways=("chat_tokenize",))
    assert one.problem == "can't pass options to the template"


async def test_entries_that_are_no_tokens_show_no_ids() -> None:
    for entries in ([1, 2], [{"text": "x"}], [{"id": "1"}], {"id": 1}, "1"):
        answer = {"tokenize_response": entries, "templated_text": TEXT}
        (one,) = await show(
            RecordedEndpoint("tgi", {"/chat_tokenize": answer}), HELLO, ways=("chat_tokenize",)
        )
        assert one.ids is None
        assert one.problem is not None
