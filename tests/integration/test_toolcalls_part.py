"""Tool calls over real HTTP: what the part says of an honest server, and of servers with planted faults."""

from __future__ import annotations

import random
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.toolcalls.part import ToolCallsPart
from probes.clock import system_clock
from probes.http_endpoint import connect
from probes.toolcall_suite.loading import load_suite
from probes.toolcall_suite.prompt import Due
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from reference_engine.server.tool_calls.template import TOOLS_TEMPLATE
from ringtrue.endpoint import Endpoint
from ringtrue.records import (
    Cause,
    Check,
    EndpointSpec,
    Exchange,
    Finding,
    Observation,
    Party,
    Request,
    State,
)
from ringtrue.verdict import state_of

# What a server forces needs no model that can call: the small one writes a byte a token.
SUITE = [prompt for prompt in load_suite() if prompt.due is not Due.NO_CALL and "turns" not in prompt.id][::4]
CAP = 700


class Mute:
    """An endpoint whose chat route does not show the tokens that it generated."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.spec = endpoint.spec

    async def send(self, request: Request) -> Exchange:
        exchange = await self._endpoint.send(request)
        return exchange if request.messages is None else replace(exchange, token_ids=None)


class Examined:
    """The findings of one night, its numbers and what was sent."""

    def __init__(self, findings: tuple[Finding, ...], numbers: dict[str, Observation], asker: Asker) -> None:
        self.findings, self.numbers, self.asker = findings, numbers, asker

    @property
    def finding(self) -> Finding:
        return self.findings[0]

    @property
    def codes(self) -> set[str]:
        return set(self.finding.evidence["codes"])


async def examine(
    engine: Engine,
    model: str,
    *tool_faults: str,
    template: str | None = TOOLS_TEMPLATE,
    dialect: str = "vllm",
    share: float = 1.0,
    suite: Any = SUITE,
    mute: bool = False,
    cap: int = CAP,
) -> Examined:
    loaded = engine.load(model)
    if template is not None:
        loaded = replace(loaded, codec=loaded.codec.with_template(template))
    of = ToolCallsPart(
        LocalReference(engine, loaded), seed=0, night=1, count=100, cap=cap, suite=suite, tool_format="hermes"
    )
    replica = Replica("m", model, Faults(tool_faults=tool_faults, share=share), chat_template=template)
    app = create_app(engine, replica, rng=random.Random(4))  # noqa: S311 - ids of calls
    numbers: dict[str, Observation] = {}

    async def emit(observations: Any) -> None:
        numbers.update({one.metric: one for one in observations})

    async with serve_app(app) as url:
        spec = EndpointSpec("served", url, "m", dialect=dialect)
        async with aclosing(connect(spec, {})) as endpoint:
            asker = Asker(
                Mute(endpoint) if mute else endpoint,  # type: ignore[arg-type]
                Scribe(spec.name, "r1", of.name),
                seed=0,
                clock=system_clock(),
                emit=emit,
                on_progress=lambda _: None,
                record=None,
            )
            found = await of.examine(asker, Known(20, True, None, State.OK))
    return Examined(found, numbers, asker)


async def test_an_honest_server_is_sound_in_both_forms(small_engine: Engine, roomy_model: str) -> None:
    night = await examine(small_engine, roomy_model)

    assert night.codes == set(), night.finding.message
    assert (state_of(night.finding), night.finding.n) == (State.OK, len(SUITE))
    assert night.numbers["effective_rate"].value == night.numbers["call_validity"].value == 1
    assert night.numbers["stream_parity"].value == 0
    assert "15 steps in a row succeed at a rate of 1 " in night.finding.message
    assert night.finding.evidence["tools_dropped"] is False


@pytest.mark.parametrize("dialect", ["vllm", "openai"])
async def test_a_parser_that_breaks_arguments_is_told_by_the_answers_own_tokens(
    small_engine: Engine, roomy_model: str, dialect: str
) -> None:
    night = await examine(small_engine, roomy_model, "args.not_json", dialect=dialect)

    assert night.finding.code == "toolcalls.args.not_json"
    assert state_of(night.finding) is State.WORSE
    told = (Party.PROVIDER, Cause.PARSING) if dialect == "vllm" else (Party.UNKNOWN, Cause.UNKNOWN)
    assert (night.finding.party, night.finding.cause) == told
    assert ("the dialect openai gives no token IDs" in night.finding.message) is (dialect == "openai")


@pytest.mark.parametrize(
    ("fault", "party"), [("schema.type", Party.PROVIDER), ("raw:schema.type", Party.UNKNOWN)]
)
async def test_where_the_chat_shows_no_tokens_its_prompt_is_asked_again_as_token_ids(
    small_engine: Engine, roomy_model: str, fault: str, party: Party
) -> None:
    suite = [prompt for prompt in load_suite() if prompt.free and prompt.due is Due.CALL][:12]
    night = await examine(small_engine, roomy_model, fault, suite=suite, mute=True)

    assert night.finding.evidence["raw"]["again"] > 0
    assert night.finding.evidence["raw"]["own"] == 0
    assert "schema.type" in night.codes
    if party is Party.PROVIDER:
        assert (night.finding.party, night.finding.cause) == (Party.PROVIDER, Cause.PARSING)
    else:
        assert "the model's own by its raw text: schema.type" in night.finding.message
        assert state_of(night.finding) is State.OK


async def test_a_model_that_breaks_arguments_is_not_the_servers_fault(
    small_engine: Engine, roomy_model: str
) -> None:
    night = await examine(small_engine, roomy_model, "raw:schema.missing_required")

    assert "schema.missing_required" in night.codes
    assert state_of(night.finding) is State.OK
    assert "the model's own by its raw text: schema.missing_required" in night.finding.message
    assert night.numbers["effective_rate"].value < 0.5


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("leak.content", "leak.content"),
        ("finish.stop_with_call", "finish.stop_with_call"),
        ("id.missing", "id.missing"),
        ("stream.parity", "stream.parity"),
    ],
)
async def test_what_the_server_does_to_calls_is_parsing(
    small_engine: Engine, roomy_model: str, fault: str, code: str
) -> None:
    night = await examine(small_engine, roomy_model, fault)

    assert code in night.codes
    assert (state_of(night.finding), night.finding.check) == (State.WORSE, Check.TOOLCALLS)
    assert (night.finding.party, night.finding.cause) == (Party.PROVIDER, Cause.PARSING)
    if fault == "stream.parity":
        assert night.numbers["stream_parity"].value > 0.5


async def test_structures_that_are_not_met_are_output(small_engine: Engine, roomy_model: str) -> None:
    suite = [prompt for prompt in load_suite() if prompt.due is Due.JSON]
    suite += [replace(prompt, id=f"{prompt.id}-again") for prompt in suite]
    night = await examine(small_engine, roomy_model, "output.structured_invalid", suite=suite)

    assert [finding.check for finding in night.findings] == [Check.TOOLCALLS, Check.OUTPUT]
    assert night.findings[1].code == "output.structured_invalid"


async def test_a_template_that_drops_the_tools_is_the_prompts_fault(
    small_engine: Engine, roomy_model: str
) -> None:
    """SmolLM2 with a server that does not hold the model to the choice: the template leaves the tools out."""
    suite = [prompt for prompt in SUITE if prompt.request.tool_choice == "required"] + [
        prompt for prompt in load_suite() if prompt.request.tool_choice == "required"
    ][:8]
    suite = list({prompt.id: prompt for prompt in suite}.values())
    night = await examine(
        small_engine, roomy_model, "choice.required_violated", template=None, suite=suite, cap=60
    )

    assert "choice.required_violated" in night.codes
    assert (night.finding.party, night.finding.cause) == (Party.MODEL, Cause.PROMPT)
    assert "the tools are not rendered" in night.finding.message


async def test_a_share_of_sessions_meets_the_fault_and_pairs_stay_together(
    small_engine: Engine, roomy_model: str
) -> None:
    night = await examine(small_engine, roomy_model, "finish.stop_with_call", share=0.6)

    counts = night.finding.evidence["codes"]["finish.stop_with_call"]
    assert counts["plain"] == counts["streamed"]
    assert 0 < counts["plain"] < len(SUITE)
    assert "stream.parity" not in night.codes
