"""Questions and counted answers over real HTTP, with the real model on both sides."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import Any

import numpy as np
import pytest

from evals.curve_numbers import Scribe
from evals.parts.answers.findings import NO_BASELINE
from evals.parts.answers.part import AnswersPart
from evals.parts.asker import Asker
from evals.parts.part import Known
from probes.clock import system_clock
from probes.http_endpoint import connect
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.records import EndpointSpec, State

CAP = 12


@asynccontextmanager
async def examined(engine: Any, part: AnswersPart, faults: Faults) -> Any:
    """Yield the part's finding, its numbers, and the asker."""
    replica = Replica("smollm2", "smollm2-135m", faults=faults)
    app = create_app(engine, replica, key=None, now=lambda: 0.0)
    numbers = {}

    async def emit(observations: Any) -> None:
        numbers.update({one.metric: one for one in observations})

    async with serve_app(app) as url:
        spec = EndpointSpec("served", url, "smollm2", dialect="vllm")
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
            [finding] = await part.examine(asker, Known(20, True, None, State.OK))
            yield finding, numbers, asker


async def test_the_answers_of_the_model_are_counted_by_its_server(engine: Any, reference: Any) -> None:
    part = AnswersPart(reference, seed=0, night=1, count=4, cap=CAP)
    async with examined(engine, part, Faults()) as (finding, numbers, asker):
        pass
    assert (finding.code, finding.n) == (NO_BASELINE, 4)
    assert len({exchange.request.session for exchange in asker.exchanges}) == 4
    lengths = {}
    for exchange in asker.exchanges:
        assert exchange.prompt_token_ids == reference.render(exchange.request.messages)
        lengths[exchange.id] = exchange.usage.completion_tokens
        assert (exchange.finish_reason == "length") is (lengths[exchange.id] == CAP)
    mean = np.log(list(lengths.values())).mean()
    assert numbers["answer_log_length"].value == pytest.approx(mean, abs=1e-9)
    assert numbers["capped_answers"].value == sum(n == CAP for n in lengths.values()) / 4
    assert {numbers[f"{kind}_answers"].value for kind in ("empty", "looping", "flooded", "foreign")} == {0.0}


async def test_a_template_that_lost_its_generation_prompt_withholds_the_answers(
    engine: Any, reference: Any
) -> None:
    part = AnswersPart(reference, seed=0, night=1, count=4, cap=1)
    async with examined(engine, part, Faults(drop_generation_prompt=True)) as (finding, numbers, _):
        pass
    assert finding.message == "withheld: the token IDs differ (see tokens)"
    assert "answer_log_length" not in numbers
