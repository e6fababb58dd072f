"""What is best known of a prompt, and what must hold between ways."""

from __future__ import annotations

from typing import Any

import pytest

from probes.dialects import DIALECTS
from probes.prompt_ids import Shown, best, invariants, rendering_ways, show, tokenize
from ringtrue.errors import UsageError
from tests.unit.probes.dialects.recorded import HELLO, RecordedEndpoint
from tokenizer_checks.templates.chat import Chat

USED = Shown("chat", True, (1, 2, 3), 3)
STREAMED = Shown("chat_stream", True, (1, 2, 3), 3)
RENDERED = Shown("tokenize", False, (1, 2, 3), 3)
COUNTED = Shown("chat", True, None, 3)
NOTHING = Shown("render", False, None, None, problem="no such route")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ((NOTHING, RENDERED, USED), USED),
        ((USED, STREAMED), USED),
        ((COUNTED, RENDERED), RENDERED),
        ((NOTHING, COUNTED), COUNTED),
        ((NOTHING,), None),
        ((), None),
    ],
)
def test_used_ids_go_before_rendered_ones_and_these_before_a_count(
    shown: tuple[Shown, ...], expected: Shown | None
) -> None:
    assert best(shown) is expected


def test_an_honest_server_keeps_every_relation() -> None:
    relations = invariants((USED, STREAMED, RENDERED, NOTHING))
    assert [(one.name, one.kept) for one in relations] == [
        ("count", True),
        ("count", True),
        ("count", True),
        ("routes", True),
        ("rendered", True),
    ]
    assert relations[-1].sentence == "tokenize: the IDs that chat used"


def test_a_count_that_is_not_the_length_names_its_way() -> None:
    relation = invariants((Shown("chat_stream", True, (1, 2, 3), 4),))[0]
    assert relation.kept is False
    assert relation.sentence.startswith("chat_stream: ")


def test_a_count_alone_is_held_against_the_ids_that_another_way_shows() -> None:
    relation = invariants((COUNTED, Shown("apply_template", False, (1, 1, 2, 3), None)))[0]
    assert (relation.name, relation.kept) == ("count", False)
    assert relation.sentence.startswith("apply_template against chat: ")


def test_ways_that_differ_say_from_where_on() -> None:
    doubled = Shown("completions_text", False, (1, 1, 2, 3), 4)
    broken = {one.name: one for one in invariants((USED, RENDERED, doubled)) if one.kept is False}
    assert broken.keys() == {"routes", "rendered"}
    assert broken["rendered"].at == 1
    assert broken["rendered"].sentence == "completions_text shows other IDs than chat used, from token 1 on"


def test_where_nothing_is_shown_nothing_is_said() -> None:
    assert [one.kept for one in invariants((NOTHING,))] == [None, None, None]
    assert [one.kept for one in invariants(())] == [None, None, None]


async def test_a_way_that_no_dialect_has_is_the_caller_s_mistake() -> None:
    endpoint = RecordedEndpoint("openai", {})
    with pytest.raises(UsageError, match="no way named 'chta'"):
        await show(endpoint, HELLO, ways=("chta",))
    assert await show(endpoint, HELLO, ways=("tokenize",)) == ()
    assert endpoint.sent == []


async def test_the_arguments_of_a_call_travel_as_text_on_every_route() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"b": 1, "a": 2}}}
    chat = Chat(({"role": "assistant", "content": "", "tool_calls": [call]},))
    endpoint = RecordedEndpoint("vllm", {})
    await show(endpoint, chat, ways=("chat", "tokenize"))
    calls = [body["messages"][0]["tool_calls"][0]["function"] for _, body in endpoint.sent]
    assert calls == [{"name": "f", "arguments": '{"b": 1, "a": 2}'}] * 2


TOKENS = {"tokens": [1, 2], "count": 2}


@pytest.mark.parametrize(
    ("dialect", "answer", "sent"),
    [
        ("vllm", TOKENS, {"model": "m", "prompt": "<s>x", "add_special_tokens": False}),
        ("sglang", TOKENS, {"model": "m", "prompt": "<s>x", "add_special_tokens": False}),
        ("llama_cpp", TOKENS, {"content": "<s>x", "add_special": False, "parse_special": True}),
        ("tgi", [{"id": 1, "text": "<s>"}, {"id": 2, "text": "x"}], {"inputs": "<s>x"}),
    ],
)
async def test_text_is_tokenized_by_the_server_s_own_route(dialect: str, answer: Any, sent: Any) -> None:
    endpoint = RecordedEndpoint(dialect, {"/tokenize": answer})
    one = await tokenize(endpoint, "<s>x")
    assert (one.way, one.used, one.ids, one.text, one.problem) == (
        "tokenize_text",
        False,
        (1, 2),
        "<s>x",
        None,
    )
    assert endpoint.sent == [("/tokenize", sent)]


async def test_text_that_cannot_be_tokenized_says_why() -> None:
    refused = await tokenize(RecordedEndpoint("vllm", {}), "x")
    assert (refused.ids, "No such route" in (refused.problem or "")) == (None, True)
    without = await tokenize(RecordedEndpoint("openai", {}), "x")
    assert without.problem == "the dialect openai knows no route that tokenizes text"
    junk = await tokenize(RecordedEndpoint("vllm", {"/tokenize": {"tokens": [99]}}), "x", vocabulary_size=9)
    assert junk.problem == "99 at index 0 is no token ID: they go from 0 to 8"


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("vllm", {"tokenize", "render"}),
        ("sglang", {"tokenize"}),
        ("llama_cpp", {"apply_template"}),
        ("tgi", {"chat_tokenize"}),
        ("ollama", {"render"}),
        ("openai", set()),
        ("together", set()),
    ],
)
def test_the_ways_that_render_ask_no_model(name: str, ways: set[str]) -> None:
    assert rendering_ways(DIALECTS[name]) == ways


@pytest.mark.parametrize("name", DIALECTS)
async def test_no_way_raises_whatever_a_server_refuses_or_lacks(name: str) -> None:
    shown = await show(RecordedEndpoint(name, {}), HELLO)
    assert len({one.way for one in shown}) == len(shown) > 0
    assert all(one.ids is None and one.count is None and one.problem for one in shown)
