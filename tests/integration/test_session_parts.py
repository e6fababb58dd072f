"""Sessions and the prefix cache over real HTTP, against the reference engine's own server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known, Part
from evals.parts.prefix_cache import PrefixCachePart
from evals.parts.sessions.part import SessionsPart
from probes.clock import system_clock
from probes.http_endpoint import connect
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.models.loading import LoadedModel
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.records import Cause, EndpointSpec, Finding, Limits, Observation, State
from ringtrue.verdict import state_of

KNOWN = Known(k=20, trusted=True, scaling=None, logprobs=State.OK)


@pytest.fixture(scope="module")
def truth(small_engine: Engine, small: LoadedModel) -> LocalReference:
    return LocalReference(small_engine, small)


@pytest.fixture(scope="module")
def sessions(truth: LocalReference) -> SessionsPart:
    return SessionsPart(truth, seed=0, floor_dtype="bf16", calibration=200)


@asynccontextmanager
async def served(
    engine: Engine, model: str, faults: Faults, healthy: str, dialect: str
) -> AsyncIterator[EndpointSpec]:
    app = create_app(engine, Replica("small", model, faults=faults, healthy=healthy, seed=3))
    async with serve_app(app) as url:
        yield EndpointSpec("pool", url, "small", dialect=dialect, limits=Limits(max_in_flight=8))


async def ask(spec: EndpointSpec, part: Part) -> Finding:
    async def emit(_observations: Sequence[Observation]) -> None:
        return None

    async with aclosing(connect(spec, {})) as endpoint:
        asker = Asker(
            endpoint,
            Scribe(spec.name, "night-1", part.name),
            seed=0,
            clock=system_clock(),
            emit=emit,
            on_progress=lambda _count: None,
            record=None,
        )
        (finding,) = await part.examine(asker, KNOWN)
    return finding


@pytest.mark.parametrize("dialect", ["vllm", "openai"])
async def test_a_share_of_sessions_with_coarser_weights_is_a_mixture(
    small_engine: Engine, small_model: Path, sessions: SessionsPart, dialect: str
) -> None:
    faults = Faults(share=0.16)
    async with served(
        small_engine, f"{small_model}@int3+bf16", faults, f"{small_model}@bf16", dialect
    ) as spec:
        finding = await ask(spec, sessions)
    assert (state_of(finding), finding.cause) == (State.CHANGED, Cause.MIXTURE), finding.message
    bad = finding.evidence["sessions"]
    assert len(bad) >= 3
    assert all(faults.meets(key, seed=3) for key in bad)


@pytest.mark.parametrize("model", ["bf16", "int3+bf16"])
async def test_sessions_that_are_all_alike_are_no_mixture_honest_or_not(
    small_engine: Engine, small_model: Path, sessions: SessionsPart, model: str
) -> None:
    async with served(
        small_engine, f"{small_model}@{model}", Faults(), f"{small_model}@bf16", "vllm"
    ) as spec:
        finding = await ask(spec, sessions)
    assert (state_of(finding), finding.n) == (State.OK, 125), finding.message
    assert finding.evidence["everywhere"] == (model != "bf16")


async def test_a_server_without_a_prefix_cache_answers_alike_twice(
    small_engine: Engine, small_model: Path, truth: LocalReference
) -> None:
    part = PrefixCachePart(truth, seed=0, floor_dtype="bf16", tokens=128)
    async with served(small_engine, f"{small_model}@bf16", Faults(), f"{small_model}@bf16", "vllm") as spec:
        finding = await ask(spec, part)
    assert (state_of(finding), finding.n) == (State.OK, 4), finding.message
    assert "nothing shows" in finding.message


async def test_a_fault_of_the_backend_is_not_taken_for_one_of_its_prefix_cache(
    small_engine: Engine, small_model: Path, truth: LocalReference
) -> None:
    part = PrefixCachePart(truth, seed=0, floor_dtype="bf16", tokens=128)
    async with served(
        small_engine, f"{small_model}@int3+bf16", Faults(), f"{small_model}@bf16", "vllm"
    ) as spec:
        finding = await ask(spec, part)
    assert state_of(finding) is State.OK
    assert "off already" in finding.message
