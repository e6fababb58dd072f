"""The probes against ``ringtrue serve``, with the real model on both sides."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import Any

import numpy as np
import pytest

from probes.clock import system_clock
from probes.context_curve import build_prompts, to_request
from probes.dialects import dialect_named
from probes.http_endpoint import connect
from probes.inspection import inspect_endpoint
from probes.runner import run
from probes.self_test import Scaling
from reference_engine.server.app import create_app
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.exit_codes import ExitCode
from ringtrue.records import EndpointSpec


@asynccontextmanager
async def served(engine: Any, **replica: Any) -> Any:
    app = create_app(engine, Replica("smollm2", "smollm2-135m", **replica), key=None, now=lambda: 0.0)
    async with serve_app(app) as url:
        yield EndpointSpec("served", url, "smollm2", dialect="vllm")


async def test_our_own_server_can_do_what_vllm_can_and_its_logprobs_are_trusted(engine: Any) -> None:
    async with served(engine) as spec:
        found = await inspect_endpoint(spec, {}, detect_dialect=True)
    assert (found.exit_code, found.capabilities.dialect) == (ExitCode.FINE, "vllm")
    assert (found.capabilities.context_length, found.capabilities.largest_k) == (8192, 20)
    assert found.self_test.scaling is Scaling.RAW
    missing = {feature.name for feature in found.capabilities.features if feature.available is not True}
    assert missing <= {"tools"}  # SmolLM2's template has no place for them


@pytest.mark.parametrize("stream", [False, True])
async def test_the_context_curve_arrives_with_the_ids_and_logprobs_of_the_reference(
    engine: Any, reference: Any, *, stream: bool
) -> None:
    prompts = build_prompts(reference, ((32, 4), (128, 2)), seed=0)
    assert all(
        abs(len(reference.encode(prompt.messages[0]["content"])) - prompt.bucket) <= 2 for prompt in prompts
    )
    by_id = {prompt.id: prompt for prompt in prompts}
    async with served(engine) as spec, aclosing(connect(spec, {})) as endpoint:
        requests = [
            to_request(prompt, k=20, dialect=dialect_named("vllm"), stream=stream) for prompt in prompts
        ]
        items = [(endpoint, request) for request in requests]
        exchanges = [exchange async for exchange in run(items, clock=system_clock())]
    assert len(exchanges) == 6
    for exchange in exchanges:
        assert exchange.error is None
        ids = reference.render(by_id[exchange.id].messages)
        assert exchange.prompt_token_ids == ids
        assert exchange.usage is not None
        assert exchange.usage.prompt_tokens == len(ids)
        truth = await reference.next_token(ids)
        assert exchange.top_logprobs is not None
        (position,) = exchange.top_logprobs
        assert position.sampled.token_id == int(np.argmax(truth))
        for token in position.top:
            assert token.token_id is not None
            assert token.logprob == pytest.approx(float(truth[token.token_id]), abs=2e-4)
