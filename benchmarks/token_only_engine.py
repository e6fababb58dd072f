"""What do tokens alone show of real faults: greedy continuations and border inputs on SmolLM2-135M?

The same prompts are answered at temperature 0 by the model with faults put
into it, and judged as the nightly parts judge them (docs/methods.md, "Greedy
margins", "Border inputs"). Greedy: 64 prompts of 16 tokens, 4 tokens each; the
tokens until CHANGED at the first look's level, beside token margins as
published (arXiv 2511.20621; tokens as independent, p <= 0.5 %). Border: 20
inputs found by the reference; how many a fault leaves the support of, what one
round of 20 requests says, and the nights of 20 until an alarm at A = 73,000,
beside B3IT as published (2602.11083, 200 requests a day). Then honest nights
by simulation: near ties that an honest server's arithmetic turns over.
Bounds: the honest copies are OK; int4 is CHANGED by at most 300 greedy tokens;
at most 1 % of simulated honest nights are CHANGED.

    python benchmarks/token_only_engine.py      # about seven minutes of one core
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import numpy as np
from rivals import b3it, token_margins

from evals.parts.border.truth import BorderPlan, Borders, BorderTruth
from evals.parts.greedy.part import LEVEL, OPENING, OPENING_TOKENS
from evals.parts.greedy.teacher import Forcing, Teacher
from logprob_drift.token_only.border_inputs import violation_alarms
from logprob_drift.token_only.border_night import judge_night
from logprob_drift.token_only.greedy_margins import CLIP, compare_with_replay
from probes.greedy import greedy_prompts
from reference_engine.generation import GenerationSpec
from reference_engine.local_reference import LocalReference, open_reference
from ringtrue.e_values import alarm_threshold
from ringtrue.records import State

RESULTS = Path(__file__).parent / "results" / "token_only_engine.json"
MODEL = "smollm2-135m"
FLOOR = "bf16"
HONEST = ("bf16",)
FAULTS = (
    *HONEST,
    "int8",
    "int4",
    "int3",
    "tuned:steps=4:rate=1e-4",
    "tuned:steps=4:rate=1e-3",
)
PROMPTS, TOKENS = 64, OPENING_TOKENS
PLAN = BorderPlan(candidates=300, inputs=20, replays=10)
THRESHOLD = alarm_threshold(200)
RIVALS_LEVEL = 0.005
NIGHTS = 30
HONEST_NIGHTS = 400


async def continued(reference: LocalReference, name: str, prompts: list[tuple[int, ...]]) -> list[list[int]]:
    """Return what the model of that name answers greedily, `TOKENS` tokens a prompt."""
    model = await asyncio.wrap_future(reference.engine.start_load(name))

    async def answer(ids: tuple[int, ...]) -> list[int]:
        spec = GenerationSpec(TOKENS)
        return [step.token_id async for step in reference.engine.generate(model, ids, spec)]

    return list(await asyncio.gather(*map(answer, prompts)))


def tokens_until_changed(answers: list[Forcing], seed: int) -> int | None:
    """Return the tokens of the shortest answers from which on the rule says CHANGED."""
    found = None
    for length in range(TOKENS, 0, -1):
        mine = np.array([one.margins[:length].mean() for one in answers])
        replay = np.array([one.replay_margins[:length].mean() for one in answers])
        night = compare_with_replay(mine, replay, np.random.default_rng(seed), level=LEVEL)
        if night.state is not State.CHANGED:
            break
        found = length * len(answers)
    return found


def tokens_until_rival(answers: list[Forcing], honest: list[Forcing]) -> int | None:
    """Return the same by token margins as published: honest tokens against the endpoint's."""
    found = None
    for length in range(TOKENS, 0, -1):
        seen = np.concatenate([one.margins[:length] for one in answers])
        floor = np.concatenate([one.margins[:length] for one in honest])
        if token_margins.p_value(floor, seen) > RIVALS_LEVEL:
            break
        found = length * len(answers)
    return found


async def greedy(reference: LocalReference) -> dict[str, dict]:
    """Return the figures of greedy continuations, by fault."""
    cut = greedy_prompts(reference, PROMPTS, tokens=TOKENS, seed=11)
    prompts = [reference.render(prompt.messages) for prompt in cut]
    teacher = Teacher(reference, FLOOR)
    rows: dict[str, dict] = {}
    honest: list[Forcing] = []
    for fault in FAULTS:
        texts = await continued(reference, f"{MODEL}@{fault}", prompts)
        answers = list(await asyncio.gather(*map(teacher.hold, prompts, texts)))
        honest = honest or answers
        rows[fault] = {
            "match": float(np.mean([one.matches.mean() for one in answers])),
            "replay_match": float(np.mean([one.replay_matches.mean() for one in answers])),
            "margin": float(np.mean([one.margins.mean() for one in answers])),
            "replay_margin": float(np.mean([one.replay_margins.mean() for one in answers])),
            "tokens": tokens_until_changed(answers, 3),
            "token_margins_tokens": None if fault in HONEST else tokens_until_rival(answers, honest),
        }
        print(f"greedy {fault}: {rows[fault]}", file=sys.stderr, flush=True)
    return rows


async def border(reference: LocalReference) -> dict:
    """Return the border inputs' rate and the figures of each fault."""
    truth = BorderTruth(reference, PLAN, seed=12, floor_dtype=FLOOR)
    borders = await truth.borders()
    if borders is None:
        raise SystemExit("no border input was found")
    days = [
        [int(row.argmax()) for row in await reference.jittered(ids(borders), dtype=FLOOR, seed=1000 + day)]
        for day in range(PLAN.replays)
    ]
    faults = {}
    for fault in FAULTS:
        model = await asyncio.wrap_future(reference.engine.start_load(f"{MODEL}@{fault}"))
        jobs = [reference.engine.start_score(model, one) for one in ids(borders)]
        chosen = [int(row.argmax()) for row in await asyncio.gather(*map(asyncio.wrap_future, jobs))]
        faults[fault] = judged(borders, chosen) | {"b3it_requests": by_b3it(days, chosen)}
        print(f"border {fault}: {faults[fault]}", file=sys.stderr, flush=True)
    return {"inputs": len(borders.inputs), "rate": borders.rate, "faults": faults}


def ids(borders: Borders) -> list[tuple[int, ...]]:
    """Return the token IDs of the inputs."""
    return [one.ids for one in borders.inputs]


def judged(borders: Borders, chosen: list[int]) -> dict:
    """Return what one round says of these first tokens, and how many nights like it are an alarm."""
    inputs = len(borders.inputs)
    outside = sum(token not in one.tokens for token, one in zip(chosen, borders.inputs, strict=True))
    night = judge_night(outside, inputs, rate=borders.rate, looks=PLAN.asks)
    series = np.array([[0] * NIGHTS + [outside] * NIGHTS])
    alarms = violation_alarms(
        series, np.full(series.shape, inputs), rate=borders.rate, correlation=0.05, threshold=THRESHOLD
    ).alarms[0, NIGHTS:]
    return {
        "outside": outside / inputs,
        "e_value": night.e_value,
        "state": night.state,
        "nights": int(alarms.argmax()) + 1 if alarms.any() else None,
    }


def by_b3it(days: list[list[int]], chosen: list[int]) -> int | None:
    """Return the requests until B3IT's third deviating day, ten answers to each input a day."""
    tokens = sorted({token for day in (*days, chosen) for token in day})
    rng = np.random.default_rng(5)

    def table(answers: list[list[int]]) -> np.ndarray:
        return np.array([[column.count(token) for token in tokens] for column in zip(*answers, strict=True)])

    reference = table([days[i] for i in rng.integers(len(days), size=b3it.REFERENCE)])
    honest = [
        table([days[i] for i in rng.integers(len(days), size=b3it.ANSWERS)])
        for _ in range(b3it.BASELINE + b3it.GAP + b3it.IN_A_ROW)
    ]
    faulty = [table([chosen] * b3it.ANSWERS)] * NIGHTS
    series = np.array([b3it.mean_total_variation(day, reference) for day in (*honest, *faulty)])
    found = b3it.alarms(series)[len(honest) :]
    return (int(found.argmax()) + 1) * b3it.INPUTS * b3it.ANSWERS if found.any() else None


def honest_nights(rng: np.random.Generator, spread: float) -> dict[str, float]:
    """Return the share of honest nights that are CHANGED, by look and in all.

    A prompt has its own share of open places (Beta, mean 15 %); there the
    second choice lies an exponential 0.5 nats below the first, and normal
    noise of 0.09 nats (of a gap, measured in bf16), in the endpoint ``spread``
    times as much, turns the choice over.
    """
    fired = np.zeros(3)
    for _ in range(HONEST_NIGHTS):
        first, second = (
            _changed(rng, prompts, tokens, spread)
            for prompts, tokens in ((OPENING, OPENING_TOKENS), (200, 50))
        )
        fired += (first, second, first or second)
    return dict(zip(("first", "second", "either"), (fired / HONEST_NIGHTS).tolist(), strict=True))


def _changed(rng: np.random.Generator, prompts: int, tokens: int, spread: float) -> bool:
    opened = rng.random((prompts, tokens)) < rng.beta(1.5, 8.5, (prompts, 1))
    gap = np.where(opened, rng.exponential(0.5, (prompts, tokens)), np.inf)
    mine, replay = (
        np.where(gap + noise * rng.standard_normal(gap.shape) < 0, np.minimum(gap, CLIP), 0.0).mean(axis=1)
        for noise in (0.09 * spread, 0.09)
    )
    return compare_with_replay(mine, replay, rng, level=LEVEL).state is State.CHANGED


def holds(found: dict) -> bool:
    """Return whether every bound holds."""
    greedy_rows, border_rows = found["greedy"], found["border"]["faults"]
    honest_ok = all(greedy_rows[h]["tokens"] is None and border_rows[h]["state"] == State.OK for h in HONEST)
    return (
        honest_ok and (greedy_rows["int4"]["tokens"] or 1e9) <= 300 and found["honest"]["1"]["either"] <= 0.01
    )


def show(found: dict) -> None:
    """Print the tables."""
    print("| fault | own choice | of a replay | margin | of a replay | tokens to CHANGED | token margins |")
    for fault, row in found["greedy"].items():
        print(f"| {fault} | " + " | ".join(_cell(value) for value in row.values()) + " |")
    print(f"\n{found['border']['inputs']} border inputs, honest rate below {found['border']['rate']:.2g}")
    print("| fault | outside | e-value of 20 requests | state | nights of 20 to the alarm | B3IT, requests |")
    for fault, row in found["border"]["faults"].items():
        print(f"| {fault} | " + " | ".join(_cell(value) for value in row.values()) + " |")
    for spread, row in found["honest"].items():
        print(f"honest nights at {spread}x the replay's noise, CHANGED: {row}")


def _cell(value: float | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.3g}"


async def measured() -> dict:
    """Return the figures of the real model."""
    reference = open_reference(MODEL, device="cpu")
    try:
        return {"border": await border(reference), "greedy": await greedy(reference)}
    finally:
        await reference.aclose()


def main() -> int:
    """Print the tables and return 1 where a bound does not hold."""
    rng = np.random.default_rng(20_260)
    found = {"threshold": THRESHOLD} | asyncio.run(measured())
    found["honest"] = {f"{spread:g}": honest_nights(rng, spread) for spread in (1.0, 1.2)}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1))
    show(found)
    return int(not holds(found))


if __name__ == "__main__":
    sys.exit(main())
