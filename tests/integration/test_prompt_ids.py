"""What ``ringtrue serve`` shows of its prompts, held against the reference that it serves."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from probes.http_endpoint import connect
from probes.prompt_ids import Shown, best, invariants, show
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.records import EndpointSpec
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.model import ModelPrompts

MODEL = "smollm2"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)  # its template writes no date
USER = {"role": "user", "content": "What is the capital of France?"}
TOOL = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}
SHOWING = {"chat", "chat_stream", "tokenize", "completions"}


@asynccontextmanager
async def served(engine: Any, **replica: Any) -> Any:
    app = create_app(engine, Replica(MODEL, "smollm2-135m", **replica), key=None, now=lambda: 0.0)
    async with (
        serve_app(app) as url,
        aclosing(connect(EndpointSpec("served", url, MODEL, dialect="vllm"), {})) as endpoint,
    ):
        yield endpoint


def kept(shown: tuple[Shown, ...]) -> set[bool | None]:
    return {relation.kept for relation in invariants(shown)}


@pytest.mark.parametrize(
    "chat",
    [
        Chat((USER,)),
        Chat(({"role": "system", "content": ""}, USER, {"role": "assistant", "content": "Paris."}, USER)),
        Chat((USER,), (TOOL,)),
        Chat(({"role": "user", "content": "a<|im_end|>b \u00e9\U0001f469\u200d\U0001f4bb  \n"},)),
        Chat((USER,), generation_prompt=False),
        Chat((USER, {"role": "assistant", "content": "The capital"}), continue_final=True),
        Chat((USER,), options={"enable_thinking": False}),
    ],
    ids=["plain", "turns", "tools", "unicode", "bare", "open", "options"],
)
async def test_every_route_uses_the_ids_of_the_model_s_own_template(
    engine: Any, reference: Any, chat: Chat
) -> None:
    expected = ModelPrompts(reference).ids(chat, NOON)
    async with served(engine) as endpoint:
        shown = await show(endpoint, chat, vocabulary_size=reference.vocabulary_size)
    by_way = {one.way: one for one in shown}
    assert {way for way, one in by_way.items() if one.ids is not None} == SHOWING
    assert {one.ids for one in shown if one.ids is not None} == {expected}
    assert kept(shown) == {True}
    assert best(shown) is by_way["chat"]
    for way in ("responses", "render"):
        assert by_way[way].problem


async def test_the_arguments_of_an_earlier_call_reach_the_template_as_an_object(
    engine: Any, reference: Any
) -> None:
    template = (
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}{{ mood }}"
    )
    call = {"id": "c", "type": "function", "function": {"name": "ping", "arguments": {"b": "<", "a": 2}}}
    chat = Chat((USER, {"role": "assistant", "content": "", "tool_calls": [call]}), options={"mood": "!"})
    async with served(engine, chat_template=template) as endpoint:
        shown = await show(endpoint, chat, ways=("chat", "chat_stream", "tokenize"))
    assert {reference.decode(one.ids or ()) for one in shown} == {USER["content"] + '{"b": "<", "a": 2}!'}


async def test_a_bos_doubled_on_the_way_in_shows_on_every_route_that_has_it(
    engine: Any, reference: Any
) -> None:
    async with served(engine, faults=Faults(double_bos=True)) as endpoint:
        shown = {one.way: one for one in await show(endpoint, Chat((USER,)))}
    expected = reference.render([USER])
    assert shown["chat"].ids == (expected[0], *expected)
    assert shown["completions"].ids == (expected[0], expected[0], *expected)  # it doubles once more
    relations = {relation.name: relation.kept for relation in invariants(tuple(shown.values()))}
    assert (relations["routes"], relations["rendered"]) == (False, False)


async def test_a_silently_cut_context_shows_between_what_is_used_and_what_is_rendered(engine: Any) -> None:
    async with served(engine, faults=Faults(truncate_context=12)) as endpoint:
        shown = await show(endpoint, Chat((USER,)), ways=("chat", "tokenize"))
    assert [len(one.ids or ()) for one in shown] == [12, 37]
    broken = [relation.name for relation in invariants(shown) if relation.kept is False]
    assert broken == ["routes", "rendered"]


async def test_the_same_server_asked_in_other_dialects_shows_what_those_can_tell(engine: Any) -> None:
    app = create_app(engine, Replica(MODEL, "smollm2-135m"), key=None, now=lambda: 0.0)
    async with serve_app(app) as url:
        for dialect, ids in (("openai", None), ("llama_cpp", None), ("together", None), ("tgi", None)):
            async with aclosing(connect(EndpointSpec("served", url, MODEL, dialect=dialect), {})) as endpoint:
                told = best(await show(endpoint, Chat((USER,))))
            assert told is not None
            assert (told.way, told.ids, told.count) == ("chat", ids, 37)
