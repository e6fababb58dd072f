"""Is the right cause named: another model, or the same one in another precision?

Five endpoints over real HTTP, asked the same 64 prompts, with another
checkpoint and the reference's own int4 registered beside the reference. The
other checkpoint is the same base trained a step further. Second table: the
judge on the same answers with one to five other checkpoints registered, also
where nothing would be asked because the curve is within its floor: is a
precision of the reference ever taken for one of them?

    python benchmarks/identity.py      # about 3 minutes on two cores
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evals.asking import Asking
from evals.comparisons import compare_answers
from evals.curve_numbers import Measured, Scribe
from evals.identity import identity, register
from evals.plan import ExaminePlan
from evals.truth import Truth
from logprob_drift.alignment import Aligned
from logprob_drift.context_curve import Curve, trace
from logprob_drift.identity import Identity, judge, unexplained
from logprob_drift.identity_findings import Identified
from probes import http_endpoint
from probes.budget import Budget
from probes.clock import system_clock
from probes.context_curve import build_prompts
from reference_engine.local_reference import open_references
from reference_engine.server.app import create_app
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.causes import Divergence, Ids, Symptoms, decide
from ringtrue.endpoint import Reference
from ringtrue.records import DRIFT, EndpointSpec, Limits, Observation
from ringtrue.verdict import state_of

RESULTS = Path(__file__).parent / "results" / "identity.json"
MODEL = "smollm2-135m"
PROMPTS, LENGTH, K = 64, 32, 20
FORCED = 32  # prompts of the second table


def checkpoint(seed: int) -> str:
    """Return the name of another checkpoint: the same base, trained a step further."""
    return f"{MODEL}@tuned:steps=1:rate=1e-3" + (f":seed={seed}" if seed else "")


OTHER = checkpoint(0)
EXPECTED = {
    f"{MODEL}@bf16": "none",
    f"{MODEL}@int8": "none",
    f"{MODEL}@int4": "numerics",
    f"{OTHER}+bf16": "identity",
    f"{OTHER}+int8": "identity",
}
HONEST = (f"{MODEL}@bf16", f"{MODEL}@int8", f"{MODEL}@int4")  # of the same checkpoint
CHECKPOINTS = tuple(checkpoint(seed) for seed in range(5))


@dataclass(frozen=True, slots=True)
class Answers:
    """One endpoint's comparable answers and their curve."""

    measured: tuple[Measured, ...]
    curve: Curve


async def ask(truth: Truth, address: str, name: str) -> Answers:
    """Ask one endpoint every prompt, as an examination does."""
    clock = system_clock()
    spec = EndpointSpec(name, f"{address}/v1", MODEL, dialect="vllm", limits=Limits(max_in_flight=16))
    endpoint = http_endpoint.connect(spec, {}, clock=clock, budget=Budget())
    rng = np.random.default_rng(0)
    plan = ExaminePlan(k=K, self_test=False)
    try:
        asking = Asking(
            endpoint,
            truth,
            plan,
            Scribe(name, "benchmark"),
            clock=clock,
            emit=drop,
            on_progress=lambda _done: None,
            record=None,
        )
        asked = await asking.ask_all(truth.prompts)
        found = await compare_answers(asked.answers, asked.compared, truth, rng)
    finally:
        await endpoint.aclose()
    return Answers(found.measured, trace([one.row for one in found.measured], [LENGTH], rng))


async def drop(_numbers: Sequence[Observation]) -> None:
    """Keep no observation."""


def line_of(name: str, answers: Answers, found: Identified) -> dict[str, object]:
    """Return one row of the first table."""
    drifts = answers.curve.below.state in DRIFT
    cause = "none"
    if drifts:
        fits = found.other_model_fits
        cause = decide(
            Symptoms(
                ids=Ids.EQUAL, divergence=Divergence.EVERYWHERE, other_model_fits=fits, sessions_alike=True
            )
        )[0].value
    return {
        "endpoint": name,
        "kl": answers.curve.below.mean_d,
        "floor": answers.curve.below.mean_f,
        "logprobs": answers.curve.below.state.value,
        "identity": state_of(found.finding).value,
        "cause": cause,
        "expected": EXPECTED[name],
        "reason": found.finding.message,
        "evidence": dict(found.finding.evidence),
    }


async def forced(answers: Answers, truth: Truth, models: Sequence[Reference]) -> Identity:
    """Return what the judge says of these answers, whether or not the curve would have it asked."""
    columns = []
    for model in (truth.reference, *models):
        left = []
        for one in answers.measured[:FORCED]:
            if isinstance(one.answer.aligned, Aligned):
                row = await model.next_token(truth.expected[one.answer.prompt.id])
                left.append(unexplained(row, one.answer.aligned))
        columns.append(np.array(left))
    names = [model.model for model in models]
    return judge(columns[0], dict(zip(names, columns[1:], strict=True)), np.random.default_rng(0))


async def measure() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Serve, ask and judge all endpoints."""
    reference, precise, *checkpoints = await asyncio.to_thread(
        open_references, (MODEL, f"{MODEL}@int4", *CHECKPOINTS), device="cpu"
    )
    prompts = build_prompts(reference, ((LENGTH, PROMPTS),), seed=0)
    truth = Truth(reference, prompts, floor_dtype="bf16", k=K, seed=0)
    registered = await asyncio.to_thread(register, reference, (checkpoints[0], precise))
    named: list[dict[str, object]] = []
    chances: list[dict[str, object]] = []
    honest: dict[str, Answers] = {}
    try:
        for model in EXPECTED:
            app = await asyncio.to_thread(create_app, reference.engine, Replica(MODEL, model))
            async with serve_app(app) as address:
                answers = await ask(truth, address, model)
            rng = np.random.default_rng(0)
            found = await identity(
                model, answers.measured, answers.curve, registered, truth, rng, sessions_alike=True
            )
            named.append(line_of(model, answers, found))
            print_row(named[-1])
            honest |= {model: answers} if model in HONEST else {}
        for model, answers in honest.items():
            for count in range(1, len(checkpoints) + 1):
                chances.append(chance_line(model, count, await forced(answers, truth, checkpoints[:count])))
                print_row(chances[-1])
    finally:
        await truth.aclose()
        await reference.aclose()
    return named, chances


def chance_line(name: str, count: int, judged: Identity) -> dict[str, object]:
    """Return one row of the second table."""
    best = judged.best
    return {
        "endpoint": name,
        "registered": count,
        "fit": judged.fit.value,
        "best": best.name if best else None,
        "gain": best.gain if best else None,
        "low": best.interval.low if best and best.interval else None,
        "divergence": judged.divergence,
    }


def print_row(row: dict[str, object]) -> None:
    """Print a row, a number to three digits."""
    print(
        "  ".join(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()),
        flush=True,
    )


def main() -> int:
    """Print both tables; return 1 if a cause is wrong or an honest endpoint passes for another model."""
    named, chances = asyncio.run(measure())
    RESULTS.write_text(
        json.dumps(
            {
                "prompts": PROMPTS,
                "length": LENGTH,
                "k": K,
                "forced": FORCED,
                "named": named,
                "chances": chances,
            },
            indent=1,
        )
        + "\n"
    )
    wrong = [row["endpoint"] for row in named if row["cause"] != row["expected"]]
    false = sum(row["fit"] != "no" for row in chances)
    print(f"wrong causes: {wrong or 'none'}")
    print(f"the same checkpoint taken for another one: {false} of {len(chances)}")
    return int(bool(wrong) or bool(false))


if __name__ == "__main__":
    sys.exit(main())
