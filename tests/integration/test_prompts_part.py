"""The prompts of a night over real HTTP, of an honest server and of ones that render otherwise."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.prompts.chats import NAMES
from evals.parts.prompts.part import PromptsPart
from evals.parts.prompts.states import DEPARTURE, IDS, OWN
from probes.clock import system_clock
from probes.http_endpoint import connect
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from reference_engine.server.tool_calls.template import TOOLS_TEMPLATE
from ringtrue.records import Cause, Check, EndpointSpec, Finding, Observation, Party, State
from ringtrue.verdict import conclude, state_of

MODEL = "smollm2-135m"
PLAIN = """\
{% for message in messages %}\
{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
NOW = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)


@dataclass
class Night:
    """The findings of one night, and its states by metric and chat."""

    findings: tuple[Finding, ...]
    states: Mapping[tuple[str, str], float]
    asker: Asker

    @property
    def drifting(self) -> dict[str, Finding]:
        return {f.code: f for f in self.findings if state_of(f) is not State.OK}

    def of(self, metric: str) -> dict[str, float]:
        return {label.partition(".")[0]: value for (of, label), value in self.states.items() if of == metric}


async def night(
    engine: Engine,
    faults: Faults | None = None,
    *,
    template: str | None = None,
    own: str | None = None,
    dialect: str = "vllm",
    count: int = 8,
    at: datetime = NOW,
) -> Night:
    """Spend a night with a server whose template is ``template``, where the model's own is ``own``."""
    loaded = engine.load(MODEL)
    if own is not None:
        loaded = replace(loaded, codec=loaded.codec.with_template(own))
    part = PromptsPart(LocalReference(engine, loaded), count=count, at=at)
    replica = Replica("m", MODEL, faults or Faults(), chat_template=template or own)
    app = create_app(engine, replica, rng=random.Random(4))  # noqa: S311 - ids of calls
    states: dict[tuple[str, str], float] = {}

    async def emit(observations: Any) -> None:
        states.update({(one.metric, one.session): one.value for one in observations if _is_state(one)})

    async with serve_app(app) as url:
        spec = EndpointSpec("served", url, "m", dialect=dialect)
        async with aclosing(connect(spec, {})) as endpoint:
            asker = Asker(
                endpoint,
                Scribe(spec.name, "r1", part.name),
                seed=0,
                clock=system_clock(),
                emit=emit,
                on_progress=lambda _: None,
                record=None,
            )
            found = await part.examine(asker, Known(20, True, None, State.OK))
    return Night(found, states, asker)


def _is_state(one: Observation) -> bool:
    return one.metric in (IDS, DEPARTURE, OWN)


async def test_an_honest_server_uses_the_models_own_ids_in_every_chat(engine):
    found = await night(engine, count=len(NAMES))

    assert found.drifting == {}
    (verdict,) = conclude("served", "m", found.findings, previous={}, run="r1", at=NOW)
    assert (verdict.check, verdict.verdict) == (Check.TOKENS, State.OK)
    assert set(found.of(OWN).values()) == {1.0}
    assert set(found.of(IDS)) == set(NAMES)


async def test_a_template_of_the_model_that_ignores_tools_is_said_and_warns_nobody(engine):
    found = await night(engine)

    (said,) = (f for f in found.findings if "tools are ignored" in f.message)
    assert (said.party, state_of(said)) == (Party.MODEL, State.OK)
    assert "by the model's own template" in said.message


async def test_a_server_that_writes_tools_which_the_model_was_not_trained_on_is_blamed(engine):
    found = await night(engine, template=TOOLS_TEMPLATE)

    assert {f.cause for f in found.drifting.values()} == {Cause.PROMPT}
    (said,) = (f for f in found.findings if f.code == "prompts.relation.tools")
    assert (said.party, state_of(said)) == (Party.PROVIDER, State.CHANGED)


async def test_a_server_that_drops_tools_which_the_models_template_writes_is_blamed(engine):
    ignoring = TOOLS_TEMPLATE.replace("if tools", "if false")
    assert ignoring != TOOLS_TEMPLATE
    found = await night(engine, own=TOOLS_TEMPLATE, template=ignoring)

    assert "prompts.tools" in found.drifting
    (said,) = (f for f in found.findings if f.code == "prompts.relation.tools")
    assert (said.party, state_of(said)) == (Party.PROVIDER, State.CHANGED)
    assert "one_tool" in found.drifting["prompts.tools"].evidence["chats"]


@pytest.mark.parametrize(
    ("faults", "code", "named"),
    [
        (Faults(double_bos=True), "prompts.bos", "bos_doubled"),
        (Faults(drop_generation_prompt=True), "prompts.suffix", "generation_prompt_dropped"),
        (Faults(drop_default_system=True), "prompts.system", None),
    ],
)
async def test_a_fault_of_the_template_is_named_by_its_layer(engine, faults, code, named):
    found = await night(engine, faults)

    assert set(found.drifting) == {code}
    finding = found.drifting[code]
    assert (finding.check, finding.cause, state_of(finding)) == (Check.TOKENS, Cause.PROMPT, State.CHANGED)
    if named is not None:
        assert named in finding.message
    assert 0.0 in found.of(OWN).values()


async def test_counts_alone_show_that_prompts_are_longer_and_say_that_they_are_counts(engine):
    honest = await night(engine, dialect="openai", count=6)
    doubled = await night(engine, Faults(double_bos=True), dialect="openai", count=6)

    assert honest.drifting == {}
    assert set(honest.of(DEPARTURE).values()) == {0.0}
    (finding,) = doubled.drifting.values()
    assert "counts" in finding.message
    assert set(doubled.of(DEPARTURE).values()) == {1.0}
    assert doubled.of(IDS) == {}


@pytest.mark.parametrize(("off", "codes"), [(-1, set()), (0, set()), (1, set()), (40, {"prompts.date"})])
async def test_a_template_that_writes_the_day_is_right_on_the_servers_day_and_the_next(engine, off, codes):
    dated = "{{ '<|im_start|>system\nToday is ' + strftime_now('%d %B %Y') + '.<|im_end|>\n' }}" + PLAIN
    found = await night(engine, own=dated, at=datetime.now(UTC) + timedelta(days=off), count=6)

    assert set(found.drifting) == codes
    assert len(set(found.of(IDS).values())) > 1


async def test_states_do_not_depend_on_the_day(engine):
    dated = "{{ '<|im_start|>system\nToday is ' + strftime_now('%d %B %Y') + '.<|im_end|>\n' }}" + PLAIN
    frozen = dated.replace("strftime_now('%d %B %Y')", "'04 July 2024'")
    today, frozen_night = await night(engine, own=dated, count=3), await night(engine, own=frozen, count=3)

    assert today.of(IDS) == frozen_night.of(IDS)


async def test_the_same_prompts_have_the_same_states_on_another_night(engine):
    assert (await night(engine, count=6)).states == (await night(engine, count=6)).states


async def test_a_server_that_is_gone_is_not_asked_every_chat(engine):
    loaded = engine.load(MODEL)
    part = PromptsPart(LocalReference(engine, loaded), count=len(NAMES), at=NOW)

    async def emit(_: Any) -> None:
        pass

    spec = EndpointSpec("gone", "http://127.0.0.1:9", "m", dialect="vllm")
    spec = replace(spec, limits=replace(spec.limits, max_attempts=1))
    async with aclosing(connect(spec, {})) as endpoint:
        asker = Asker(
            endpoint,
            Scribe("gone", "r1", part.name),
            seed=0,
            clock=system_clock(),
            emit=emit,
            on_progress=lambda _: None,
            record=None,
        )
        found = await part.examine(asker, Known(20, True, None, State.OK))

    assert found == ()
    assert len(asker.exchanges) < len(NAMES)
