"""Token IDs on real engines: the model's own by every route, and where not, the right layer is blamed."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from evals.tokens.asking import ask_chats
from evals.tokens.chats import choose_chats
from evals.tokens.compared import OWN, Compared, Yardstick, compared
from evals.tokens.outcome import Match, judge_chat
from evals.tokens.own import ByTemplate
from probes.http_endpoint import connect
from probes.prompt_ids import show
from reference_engine.server.tool_calls.template import TOOLS_TEMPLATE
from reference_engine.tokenizers.opening import open_tokenizer
from ringtrue.endpoint import Endpoint, PromptFormat
from ringtrue.records import Cause, EndpointSpec, Exchange, Finding, Party, Request, State
from ringtrue.verdict import state_of
from tests.engines import servers, templates
from tokenizer_checks.templates.model import ModelPrompts

pytestmark = pytest.mark.engines


class Rendering:
    """An endpoint of which every chat brings its own template along."""

    def __init__(self, endpoint: Endpoint, template: str) -> None:
        self.spec = endpoint.spec
        self._endpoint = endpoint
        self._template = template

    async def send(self, request: Request) -> Exchange:
        extra = {**request.extra, "chat_template": self._template}
        return await self._endpoint.send(replace(request, extra=extra))


async def compare(
    server: servers.Server, own: PromptFormat, *, dialect: str, template: str | None = None
) -> Compared:
    """Ask all chats that show a layer, rendered by ``template`` where one is given."""
    spec = EndpointSpec(server.name, server.url, servers.MODEL, dialect=dialect)
    prompts = ModelPrompts(own)
    chats = choose_chats(())
    owns = {named.name: ByTemplate(prompts, named.chat, datetime.now(UTC)) for named in chats}
    async with aclosing(connect(spec, {})) as endpoint:
        if template is None:
            shown = await ask_chats(endpoint, chats, lambda: None)
        else:
            mutated: Any = Rendering(endpoint, template)
            shown = {one.name: await show(mutated, one.chat, ways={"chat"}, id=one.name) for one in chats}
    outcomes = [judge_chat(name, ways, owns[name], prompts.vocabulary) for name, ways in shown.items()]
    yardstick = Yardstick(OWN, servers.MODEL, prompts.vocabulary)
    return compared(spec.name, spec.model, outcomes, owns, yardstick)


def drifting(found: Compared) -> list[Finding]:
    return [finding for finding in found.findings if state_of(finding) is not State.OK]


async def test_vllm_uses_the_models_own_ids_in_every_chat_and_on_every_route(vllm, reference):
    found = await compare(vllm, reference, dialect="vllm")

    matches = {one.name: one.match for one in found.outcomes}
    assert set(matches.values()) == {Match.EQUAL}, matches
    assert drifting(found) == []


async def test_vllm_shows_the_ids_on_chat_stream_responses_tokenize_and_completions(vllm):
    chat = next(named.chat for named in choose_chats(["two_turns"]))
    async with aclosing(
        connect(EndpointSpec("vllm", vllm.url, servers.MODEL, dialect="vllm"), {})
    ) as endpoint:
        shown = await show(endpoint, chat)

    by_way = {one.way: one for one in shown}
    for way in ("chat", "chat_stream", "responses", "tokenize", "completions", "completions_text"):
        assert by_way[way].ids == by_way["chat"].ids is not None, (way, by_way[way].problem)
        assert by_way[way].count in (None, len(by_way[way].ids)), way


@pytest.mark.parametrize("fault", templates.MUTATIONS)
async def test_vllm_with_a_mutated_template_is_blamed_for_the_right_layer(vllm, reference, fault):
    mutated = templates.mutate(reference.template or "", fault)
    found = await compare(vllm, reference, dialect="vllm", template=mutated)

    differences = [one for one in drifting(found) if "relation" not in one.code]
    assert differences[0].code == f"tokens.{templates.LAYERS[fault]}", [one.message for one in differences]
    assert {one.cause for one in differences} == {Cause.PROMPT}


async def test_smollm2s_own_template_ignores_tools_and_that_is_the_models_doing(vllm, reference):
    found = await compare(vllm, reference, dialect="vllm")

    (said,) = (one for one in found.findings if one.code == "tokens.relation.tools")
    assert (said.party, state_of(said)) == (Party.MODEL, State.OK)
    assert "tools are ignored, by the model's own template" in said.message


async def test_a_server_that_writes_tools_where_the_models_template_has_none_is_blamed(vllm, reference):
    found = await compare(vllm, reference, dialect="vllm", template=TOOLS_TEMPLATE)

    (said,) = (one for one in found.findings if one.code == "tokens.relation.tools")
    assert (said.party, state_of(said)) == (Party.PROVIDER, State.CHANGED)
    assert any(one.code == "tokens.tools" for one in drifting(found))


async def test_llama_cpp_counts_as_many_tokens_as_the_models_own_template_gives(llama_cpp, reference):
    found = await compare(llama_cpp, reference, dialect="llama_cpp_python")

    fits = [one.name for one in found.outcomes if one.match is Match.COUNT_FITS]
    assert len(fits) >= 10, {one.name: (one.match, one.note) for one in found.outcomes}
    assert [one.message for one in drifting(found)] == []


async def test_llama_cpp_tokenizes_text_as_our_reading_of_the_same_file_does(llama_cpp, reference):
    texts = [named.chat.messages[-1].get("content") for named in choose_chats((), everything=True)]
    spec = EndpointSpec("llama_cpp", llama_cpp.url, servers.MODEL, dialect="llama_cpp_python")
    async with aclosing(connect(spec, {})) as endpoint:
        for text in (text for text in texts if isinstance(text, str) and text):
            reply = await endpoint.call("POST", "/extras/tokenize", {"model": servers.MODEL, "input": text})
            assert reply.body["tokens"] == list(reference.encode_prompt(text)), text


async def test_vllm_with_a_template_that_writes_tools_gives_the_ids_that_this_template_gives(vllm, gguf):
    writing = open_tokenizer(gguf).with_template(TOOLS_TEMPLATE)
    found = await compare(vllm, writing, dialect="vllm", template=TOOLS_TEMPLATE)

    matches = {one.name: one.match for one in found.outcomes}
    assert set(matches.values()) == {Match.EQUAL}, matches
    assert drifting(found) == []


async def test_vllm_that_drops_the_tools_which_the_models_template_writes_is_blamed(vllm, gguf):
    writing = open_tokenizer(gguf).with_template(TOOLS_TEMPLATE)
    dropping = TOOLS_TEMPLATE.replace("if tools", "if false")
    found = await compare(vllm, writing, dialect="vllm", template=dropping)

    (said,) = (one for one in found.findings if one.code == "tokens.relation.tools")
    assert (said.party, state_of(said)) == (Party.PROVIDER, State.CHANGED)
    assert any(one.code == "tokens.tools" for one in drifting(found))
