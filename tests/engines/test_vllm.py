"""vLLM on CPU, serving the embedded model's weights in bfloat16: honest, and with a faulty template."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from logprob_drift.night import BUCKET_NEEDS, GROSS, RATIO
from probes.http_endpoint import connect
from probes.inspection import inspect_endpoint
from ringtrue.exit_codes import ExitCode
from ringtrue.records import Cause, Check, EndpointSpec, Exchange, FailureKind, Party, Request, State
from tests.engines.nights import Night, Plan, SpendNight
from tests.engines.servers import MODEL, Server

pytestmark = pytest.mark.engines

_SAID = {
    "generation-prompt-dropped": "the IDs are exactly those of generation_prompt_dropped",
    "default-system-dropped": "the system prompt is another one, missing or added",
    "double-bos": "the IDs are exactly those of bos_doubled",
}
BUCKETS = ((32, 64), (128, 24), (512, 16), (2048, 4))


@pytest.fixture(scope="module")
def night(vllm: Server, spend_night: SpendNight, tmp_path_factory: pytest.TempPathFactory) -> Night:
    return spend_night(vllm, tmp_path_factory.mktemp("vllm"), Plan("vllm", BUCKETS))


def test_an_honest_vllm_is_ok_in_every_check(night: Night) -> None:
    states = {check: verdict.verdict for check, verdict in night.verdicts.items()}
    checks = (Check.LOGPROBS, Check.CONTEXT, Check.TOKENS, Check.IDENTITY, Check.WIRE)
    assert states == dict.fromkeys(checks, State.OK), night.verdicts


def test_its_divergence_is_inside_the_noise_floor_in_every_bucket(night: Night) -> None:
    divergences, floors = night.curve("kl_mean"), night.curve("kl_floor_mean")
    assert {length: one.n for length, one in divergences.items()} == dict(BUCKETS)
    for length, divergence in divergences.items():
        beyond = RATIO if divergence.n >= BUCKET_NEEDS else GROSS
        assert 0 < divergence.value < beyond * floors[length].value, f"{length} tokens"


def test_an_inspection_finds_what_vllm_can_do_and_trusts_its_logprobs(vllm: Server) -> None:
    found = asyncio.run(inspect_endpoint(_spec(vllm), {}, detect_dialect=True))
    able = {feature.name: feature.available for feature in found.capabilities.features}
    assert found.capabilities.dialect == "vllm"
    assert found.capabilities.context_length == 4096
    assert found.capabilities.largest_k == 100
    assert {name for name, available in able.items() if not available} == {
        "tools"
    }  # no tools in the template
    assert found.self_test.trusted, found.summary
    assert found.self_test.scaling == "raw"
    assert found.self_test.requests <= 20
    assert found.exit_code is ExitCode.FINE


def test_a_wrong_model_name_is_the_callers_and_is_not_retried(vllm: Server) -> None:
    exchange = _send(replace(_spec(vllm), model="smolm2"), _question("wrong-model"))
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.MODEL_NOT_FOUND
    assert exchange.error.party is Party.CALLER
    assert "smolm2" in exchange.error.message
    assert len(exchange.attempts) == 1


def test_an_inspection_of_a_wrong_model_name_is_unmeasured_and_says_why(vllm: Server) -> None:
    spec = replace(_spec(vllm), model="smolm2")
    found = asyncio.run(inspect_endpoint(spec, {}, detect_dialect=True))
    assert found.exit_code is ExitCode.UNMEASURED
    assert "smolm2" in found.summary


def test_more_logprobs_than_the_server_gives_are_a_refused_capability(vllm: Server) -> None:
    exchange = _send(_spec(vllm), replace(_question("too-many"), logprobs=101))
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.CAPABILITY_REFUSED
    assert len(exchange.attempts) == 1


def test_a_stream_and_a_plain_answer_carry_the_same(vllm: Server) -> None:
    plain = _send(_spec(vllm), _question("plain"))
    stream = _send(_spec(vllm), replace(_question("stream"), stream=True))
    assert plain.error is None
    assert plain.top_logprobs
    for name in ("top_logprobs", "prompt_token_ids", "token_ids", "text", "finish_reason"):
        assert getattr(stream, name) == getattr(plain, name), name
    assert stream.usage is not None
    assert plain.usage is not None
    assert stream.usage.prompt_tokens == plain.usage.prompt_tokens == len(plain.prompt_token_ids or ())


def test_a_mutated_template_is_a_prompt_fault_and_never_numerics(
    vllm_mutated: Server, spend_night: SpendNight, tmp_path: Path
) -> None:
    night = spend_night(vllm_mutated, tmp_path, Plan("vllm", ((32, 64),)))
    tokens = night.verdicts[Check.TOKENS]
    assert tokens.verdict in {State.CHANGED, State.WORSE}, tokens
    assert tokens.cause is Cause.PROMPT
    assert tokens.value is not None
    assert tokens.value > 0  # nats from the answers that the right prompt gives
    _, _, of_chats = tokens.reason.partition("; of the chats: ")
    assert _SAID[vllm_mutated.name.removeprefix("vllm-")] in of_chats, tokens.reason
    # On the IDs the server really used its numbers are the model's own.
    assert night.verdicts[Check.LOGPROBS].verdict is State.OK, night.verdicts[Check.LOGPROBS]
    assert night.verdicts[Check.WIRE].verdict is State.OK


def _spec(server: Server) -> EndpointSpec:
    return EndpointSpec(server.name, f"{server.url}/v1", MODEL, dialect="vllm")


def _question(name: str) -> Request:
    message = {"role": "user", "content": "Name three colours."}
    return Request(id=name, messages=(message,), logprobs=5, return_token_ids=True)


def _send(spec: EndpointSpec, request: Request) -> Exchange:
    async def ask() -> Exchange:
        async with aclosing(connect(spec, {})) as endpoint:
            return await endpoint.send(request)

    return asyncio.run(ask())
