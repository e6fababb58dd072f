"""vLLM's own prefix cache: cold under a new salt, warm under the same one, and right both times."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.prefix_cache import PrefixCachePart
from probes.clock import system_clock
from probes.http_endpoint import connect
from ringtrue.endpoint import Reference
from ringtrue.records import EndpointSpec, Finding, Limits, Observation, State
from ringtrue.verdict import state_of
from tests.engines.servers import MODEL, Server

pytestmark = pytest.mark.engines

TOKENS = 256
BLOCK = 16  # tokens; vLLM keeps whole blocks, and always computes the last token


def test_a_salted_prompt_is_cold_once_and_then_warm_and_its_answers_stay_right(
    vllm: Server, reference: Reference
) -> None:
    numbers: dict[str, float] = {}
    cached: list[int | None] = []
    finding = asyncio.run(_examine(vllm, reference, numbers, cached))
    assert (state_of(finding), finding.n, finding.evidence["warm"]) == (State.OK, 4, 4), finding.message
    assert finding.evidence["cache_key"] == "cache_salt"
    assert "changes nothing" in finding.message
    assert not any(cached[:4])
    assert all(count is not None and count >= TOKENS - BLOCK for count in cached[4:])
    assert numbers["kl_warm"] < 0.02
    assert numbers["kl_cold"] < 0.02


async def _examine(
    server: Server, reference: Reference, numbers: dict[str, float], cached: list[int | None]
) -> Finding:
    async def emit(observations: Sequence[Observation]) -> None:
        numbers.update({one.metric: one.value for one in observations})

    limits = Limits(first_byte_timeout=600.0)
    spec = EndpointSpec(server.name, f"{server.url}/v1", MODEL, dialect="vllm", limits=limits)
    part = PrefixCachePart(reference, seed=0, floor_dtype="bf16", tokens=TOKENS)
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
        known = Known(k=20, trusted=True, scaling=None, logprobs=State.OK)
        (finding,) = await part.examine(asker, known)
    cached += [e.usage.cached_tokens if e.usage is not None else None for e in asker.exchanges]
    return finding
