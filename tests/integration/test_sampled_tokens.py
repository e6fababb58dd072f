"""Sampled tokens of our own server, over real HTTP with the real model: honest, and not as asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.sampled.part import SampledPart
from probes.clock import system_clock
from probes.http_endpoint import connect
from probes.self_test import Scaling
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.records import Cause, EndpointSpec, Finding, Observation, Severity, State

LISTED = Known(20, trusted=True, scaling=Scaling.RAW, logprobs=State.OK)
TEXT_ONLY = Known(None, trusted=False, scaling=None, logprobs=State.OK)


@pytest.fixture(scope="module")
def part(reference: Any) -> SampledPart:
    return SampledPart(reference, seed=0, floor_dtype="bf16", prompts=12, candidates=12, draws=96)


async def examine(engine: Any, part: SampledPart, known: Known, faults: Faults, dialect: str) -> Finding:
    async def emit(observations: Sequence[Observation]) -> None:
        assert observations

    app = create_app(engine, Replica("smollm2", "smollm2-135m@bf16", faults=faults))
    async with serve_app(app) as url:
        spec = EndpointSpec("served", url, "smollm2", dialect=dialect)
        async with aclosing(connect(spec, {})) as endpoint:
            asker = Asker(
                endpoint,
                Scribe("served", "run", part.name),
                seed=0,
                clock=system_clock(),
                emit=emit,
                on_progress=lambda _: None,
                record=None,
            )
            (finding,) = await part.examine(asker, known)
            return finding


async def test_greedy_answers_are_seen_in_a_round_or_two_from_text_alone(
    engine: Any, part: SampledPart
) -> None:
    finding = await examine(engine, part, TEXT_ONLY, Faults(ignore_temperature=True), "openai")

    assert finding.evidence["best"] == "greedy"
    assert (finding.cause, finding.measured) == (Cause.SAMPLING, True)
    assert finding.n <= 36


async def test_an_honest_server_is_held_against_its_own_lists_and_honours_the_seed(
    engine: Any, part: SampledPart
) -> None:
    finding = await examine(engine, part, LISTED, Faults(), "vllm")

    assert finding.severity is Severity.INFO
    assert finding.evidence["null"] == "endpoint"
    assert finding.evidence["log_e"] < 5
    assert finding.evidence["seed_honoured"] is True
    assert finding.interval is not None
    assert finding.interval.low is not None
    assert finding.interval.high is not None
    assert finding.interval.low < 1 < finding.interval.high


async def test_a_temperature_that_is_too_high_is_seen_from_text_alone(engine: Any, part: SampledPart) -> None:
    finding = await examine(engine, part, TEXT_ONLY, Faults(temperature_factor=1.5), "openai")

    assert finding.code == "sampling.drawn_otherwise"
    assert finding.evidence["best"] in {"temperature_1.25", "temperature_1.5", "temperature_2"}
    assert finding.interval is not None
    assert finding.interval.low is not None
    assert finding.interval.low > 1
