"""llama.cpp serving the very file the reference was loaded from, with other arithmetic."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from logprob_drift.night import RATIO, TOLERANCE
from probes.context_curve import build_prompts
from probes.inspection import inspect_endpoint
from reference_engine.local_reference import LocalReference
from ringtrue.exit_codes import ExitCode
from ringtrue.records import Cause, Check, EndpointSpec, State
from tests.engines.nights import Night, Plan, SpendNight
from tests.engines.servers import MODEL, Server

pytestmark = pytest.mark.engines

BUCKETS = ((32, 64), (128, 24), (512, 16))


@pytest.fixture(scope="module")
def night(llama_cpp: Server, spend_night: SpendNight, tmp_path_factory: pytest.TempPathFactory) -> Night:
    # The server does not say how many tokens it takes.
    plan = Plan("openai", BUCKETS, context_length=4096)
    return spend_night(llama_cpp, tmp_path_factory.mktemp("llama_cpp"), plan)


def test_its_quantized_activations_are_a_change_of_numerics(night: Night) -> None:
    verdict = night.verdicts[Check.LOGPROBS]
    assert (verdict.verdict, verdict.cause) == (State.CHANGED, Cause.NUMERICS), verdict
    assert verdict.n == sum(count for _, count in BUCKETS)
    assert verdict.unit == "nats"
    assert verdict.value is not None
    assert 0.002 < verdict.value < TOLERANCE
    assert f"{verdict.value:.3g}" in verdict.reason


def test_it_diverges_from_the_shortest_prompts_on(night: Night) -> None:
    divergences, floors = night.curve("kl_mean"), night.curve("kl_floor_mean")
    assert {length: one.n for length, one in divergences.items()} == dict(BUCKETS)
    assert all(divergences[length].value > RATIO * floors[length].value for length in divergences)
    assert night.verdicts[Check.CONTEXT].onset is None


def test_its_prompts_are_not_blamed(night: Night) -> None:
    assert night.verdicts[Check.TOKENS].verdict is State.OK, night.verdicts[Check.TOKENS]
    assert night.verdicts[Check.WIRE].verdict is State.OK, night.verdicts[Check.WIRE]


def test_the_reference_splits_text_as_llama_cpp_does(llama_cpp: Server, reference: LocalReference) -> None:
    prompts = build_prompts(reference, ((64, 40), (512, 8)), seed=1)
    with httpx.Client(base_url=llama_cpp.url, trust_env=False) as client:
        for prompt in prompts:
            text = prompt.messages[0]["content"]
            answer = client.post("/extras/tokenize", json={"input": text}).raise_for_status()
            assert tuple(answer.json()["tokens"]) == reference.encode(text), prompt.id


def test_an_inspection_finds_what_it_cannot_do_and_trusts_its_logprobs(llama_cpp: Server) -> None:
    spec = EndpointSpec(llama_cpp.name, f"{llama_cpp.url}/v1", MODEL)
    found = asyncio.run(inspect_endpoint(spec, {}, detect_dialect=True))
    able = {feature.name: feature.available for feature in found.capabilities.features}
    assert found.capabilities.dialect == "openai"
    assert able["chat"]
    assert able["stream"]
    assert able["completions"]
    assert able["logprobs"]
    for name in ("stream usage", "token IDs", "token-ID prompts", "prompt logprobs", "tokenize", "tools"):
        assert able[name] is False, name
    assert found.self_test.trusted, found.summary
    assert found.self_test.scaling == "raw"
    assert found.self_test.requests <= 20
    assert found.exit_code is ExitCode.FINE
