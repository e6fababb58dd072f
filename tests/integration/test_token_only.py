"""Greedy continuations and border inputs over real HTTP, with a real model on both sides."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.border.part import BorderPart
from evals.parts.border.truth import BorderPlan
from evals.parts.greedy.part import OPENING, GreedyPart
from evals.parts.part import Known, Part
from probes.clock import system_clock
from probes.http_endpoint import connect
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.records import Cause, EndpointSpec, Finding, State
from ringtrue.verdict import state_of

HIDDEN = Known(k=None, trusted=False, scaling=None, logprobs=State.UNKNOWN)


async def ask(part: Part, engine: Any, model: str, dialect: str) -> tuple[Finding, int]:
    """Return what the part finds of a served model, and how many requests it took."""

    async def drop(_: Any) -> None:
        return None

    app = create_app(engine, Replica("small", model), key=None, now=lambda: 0.0)
    async with serve_app(app) as url:
        spec = EndpointSpec("served", url, "small", dialect=dialect)
        async with aclosing(connect(spec, {})) as endpoint:
            asker = Asker(
                endpoint,
                Scribe("served", "r1", part.name),
                seed=0,
                clock=system_clock(),
                emit=drop,
                on_progress=lambda _: None,
                record=None,
            )
            (finding,) = await part.examine(asker, HIDDEN)
            return finding, len(asker.exchanges)


async def test_greedy_answers_tell_an_honest_precision_from_another(
    small_engine: Any, small_model: Path, small: Any
) -> None:
    reference = LocalReference(small_engine, small)
    part = GreedyPart(reference, seed=1, floor_dtype="bf16", prompts=72, tokens=8)

    honest, asked = await ask(part, small_engine, f"{small_model}@bf16", "vllm")
    rounded, opening = await ask(part, small_engine, f"{small_model}@int3", "vllm")

    assert (state_of(honest), asked) == (State.OK, OPENING + 72), honest.message
    assert (state_of(rounded), opening) == (State.CHANGED, OPENING), rounded.message


async def test_border_inputs_tell_an_honest_precision_from_another_model_by_text_alone(
    engine: Any, reference: Any
) -> None:
    plan = BorderPlan(candidates=64, inputs=10, asks=1, replays=3)
    part = BorderPart(reference, plan, seed=1, floor_dtype="bf16")

    honest, asked = await ask(part, engine, "smollm2-135m@bf16", "openai")
    other, _ = await ask(part, engine, "smollm2-135m@tuned:noise=0.3", "openai")

    assert (state_of(honest), honest.n, asked) == (State.OK, 10, 10), honest.message
    assert state_of(other) is State.CHANGED, other.message
    assert (other.cause, Cause.PROMPT in other.alternatives) == (Cause.IDENTITY, True)
