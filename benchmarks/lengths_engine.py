"""How long are a real model's answers, and how soon does a night of 60 show that they became longer?

Asks a running server every question of the part `answers` five times, honestly
and with a bias on the token that ends an answer (``logit_bias``; `ringtrue
serve --end-bias` does the same behind the caller's back). Nights are then drawn
from what was measured, one answer a question: 45 honest ones, then 30 with
longer answers, judged as the cycle does; and 5 fleet-years of 200 honest
streams. Bounds: no more honest alarms than the budget has. Without an address it
ends with 3.

    python benchmarks/lengths_engine.py http://127.0.0.1:8101/v1 smollm2     # ten minutes with vLLM
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evals.parts.answers.columns import columns_of
from logprob_drift.alarms.night_detector import Rule, detect
from logprob_drift.token_only.lengths import CAPPED, LOG_LENGTH
from probes.answers import load_questions, to_requests
from probes.clock import system_clock
from probes.dialects import dialect_named
from probes.http_endpoint import connect
from probes.runner import run
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from ringtrue.e_values import alarm_threshold
from ringtrue.endpoint import Reference
from ringtrue.rate_change import rate_changes
from ringtrue.records import EndpointSpec, Exchange, Limits

RESULTS = Path(__file__).parent / "results" / "lengths_engine.json"
QUESTIONS, REPEATS, CAP = 60, 5, 256
BIASES = (0.0, -0.5, -1.5)  # nats
WARM_UP, AFTER, RUNS = 45, 30, 400
STREAMS, NIGHTS, YEARS = 200, 365, 5
THRESHOLD = alarm_threshold(STREAMS, detectors=3)
MODEL = "smollm2-135m"


@dataclass(frozen=True, slots=True)
class Pool:
    """What was answered with one bias: log lengths and capped answers, both [questions, repeats]."""

    bias: float
    logs: np.ndarray
    capped: np.ndarray

    def nights(self, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return mean log lengths and counts of capped answers of nights, one drawn answer a question."""
        picks = rng.integers(0, self.logs.shape[1], size=(*shape, QUESTIONS))
        rows = np.arange(QUESTIONS)
        return self.logs[rows, picks].mean(axis=-1), self.capped[rows, picks].sum(axis=-1).astype(np.float64)


async def ask(url: str, model: str, bias: float, ends: list[int], reference: Reference) -> Pool:
    """Ask everything with one bias."""
    spec = EndpointSpec("served", url, model, dialect="vllm", limits=Limits(max_in_flight=24))
    questions = load_questions(QUESTIONS)
    index = {question.id: at for at, question in enumerate(questions)}
    logs = np.zeros((QUESTIONS, REPEATS))
    capped = np.zeros((QUESTIONS, REPEATS))
    async with aclosing(connect(spec, {})) as endpoint:
        for repeat in range(REPEATS):
            requests = to_requests(
                questions, dialect=dialect_named("vllm"), seed=7, night=repeat, cap=CAP, temperature=0.7
            )
            changed = {"logit_bias": {str(token): bias for token in ends}} if bias else {}
            items = [(endpoint, replace(one, extra={**one.extra, **changed})) for one in requests]
            done: list[Exchange] = [one async for one in run(items, clock=system_clock())]
            failed = [one.error for one in done if one.error is not None]
            if failed:
                raise SystemExit(f"{len(failed)} requests failed: {failed[0]}")
            columns = columns_of(done, index, reference, cap=CAP)
            logs[columns.question, repeat] = np.log(np.maximum(columns.length, 1.0))
            capped[columns.question, repeat] = [reason in CAPPED for reason in columns.finish_reasons]
    print(f"bias {bias:+.1f}: {np.exp(logs).mean():.1f} tokens, {capped.mean():.1%} capped", flush=True)
    return Pool(bias, logs, capped)


def nights_to_alarm(honest: Pool, longer: Pool, rng: np.random.Generator) -> dict[str, float | None]:
    """Return how many nights with ``longer`` answers the two series take, in the median."""
    before, after = honest.nights(rng, (RUNS, WARM_UP)), longer.nights(rng, (RUNS, AFTER))
    lengths, capped = (np.concatenate(pair, axis=1) for pair in zip(before, after, strict=True))
    found = {
        "length": detect(lengths, LOG_LENGTH, Rule(THRESHOLD)).first,
        "capped": rate_changes(capped, np.full(capped.shape, float(QUESTIONS)), THRESHOLD).first,
    }
    nights = {}
    for name, first in found.items():
        late = np.where(first < 0, np.inf, first - WARM_UP + 1)
        median = float(np.quantile(late, 0.5, method="higher"))
        nights[name] = median if np.isfinite(median) else None
    return nights


def honest_alarms(honest: Pool, rng: np.random.Generator) -> dict[str, int]:
    """Return the alarms of honest streams in all the years."""
    alarms = {"length": 0, "capped": 0}
    for _ in range(YEARS):
        lengths, capped = honest.nights(rng, (STREAMS, NIGHTS))
        alarms["length"] += int((detect(lengths, LOG_LENGTH, Rule(THRESHOLD)).first >= 0).sum())
        trials = np.full(capped.shape, float(QUESTIONS))
        alarms["capped"] += int((rate_changes(capped, trials, THRESHOLD).first >= 0).sum())
    return alarms


async def main(url: str, model: str) -> int:
    """Ask, draw, print the table, and return 1 where a bound does not hold."""
    rng = np.random.default_rng(20_263)
    with Engine() as engine:
        loaded = engine.load(MODEL)
        reference = LocalReference(engine, loaded)
        pools = [await ask(url, model, bias, sorted(loaded.eos_ids), reference) for bias in BIASES]
    honest, *longer = pools
    within = float(honest.logs.std(axis=1, ddof=1).mean())
    print(f"SD of the log length of one question's answers: {within:.2f}")
    rows = []
    for pool in longer:
        row = {
            "bias": pool.bias,
            "length_ratio": float(np.exp(pool.logs.mean() - honest.logs.mean())),
            "capped": [float(honest.capped.mean()), float(pool.capped.mean())],
            "nights": nights_to_alarm(honest, pool, rng),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    alarms = honest_alarms(honest, rng)
    print(f"honest alarms in {YEARS} fleet-years of {STREAMS} streams: {alarms}")
    RESULTS.parent.mkdir(exist_ok=True)
    body = {"sd_within": within, "rows": rows, "honest_alarms": alarms, "threshold": THRESHOLD}
    RESULTS.write_text(json.dumps(body, indent=1))
    return int(max(alarms.values()) > YEARS)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("no address of a server and model's name given: nothing measured")
        sys.exit(3)
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2])))
