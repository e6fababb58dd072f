"""How many sampled tokens show a fault of sampling, and how often is an honest endpoint accused?

The prompts, nulls and judge of the nightly part, on the real model. The
endpoint's rows are computed once, in bf16 with batches that the null has not
seen; nights are drawn from them, altered or not. Both nulls: the endpoint's
own lists of 20, and the reference's distribution. Honest nights go on to the
limit of draws, whatever was decided, and count when the e-value was ever
beyond the alarm. Against the reference they are also drawn from rows with
fresh noise on every logit every five nights, of the floor's size and of twice that.
Bounds: honest nights alarm no more often than the level allows, and every
fault is found in 95 % of nights; a cut to 90 % of the probability, most of
which lies beyond a list of 20, in 80 %.

    python benchmarks/sampling_faults.py      # some minutes on one core
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from evals.parts.sampled.answer import read_by_own_list
from evals.parts.sampled.asking import PAIRS
from evals.parts.sampled.truth import Sampled, SampledPrompt, SampledTruth
from logprob_drift.floor import as_served
from logprob_drift.token_only.drawn_tokens import Draw, draw, judge
from logprob_drift.token_only.sampling_alternatives import ALTERNATIVES, Null
from reference_engine.local_reference import open_reference
from ringtrue.records import Exchange, Position, Request, State, Timings, TokenLogprob

RESULTS = Path(__file__).parent / "results" / "sampling_faults.json"
PROMPTS, CANDIDATES, MOST, K = 32, 128, 1200, 20
LEVELS = (1_000, 73_000)
HONEST, NOISY, FAULTY = 2000, 1000, 100  # nights
A_NOISE = 5  # nights that share one draw of the noise
SURE = 0.999  # how surely a rate above 1 / level is no chance

Rows = np.ndarray  # logprobs [prompts, vocabulary]
Alter = Callable[[np.ndarray], np.ndarray]


class Questions:
    """The prompts with one null each, and the cell of every token under it."""

    def __init__(self, nulls: list[Null], cells: list[np.ndarray]) -> None:
        self.nulls = nulls
        self.cells = cells
        self._draws: dict[tuple[int, int, int | None], Draw] = {}

    def night(self, shares: np.ndarray, rng: np.random.Generator) -> list[Draw]:
        """Return ``MOST`` draws, one a prompt in turn, from cumulative ``shares`` [prompts, vocabulary]."""
        found: list[Draw] = []
        before: dict[int, int] = {}
        while len(found) < MOST:
            for at in rng.permutation(len(self.nulls))[: MOST - len(found)].tolist():
                token = int(np.searchsorted(shares[at], rng.random() * shares[at][-1], side="right"))
                cell = int(self.cells[at][min(token, shares.shape[1] - 1)])
                key = (at, cell, before.get(at))
                if key not in self._draws:
                    self._draws[key] = draw(self.nulls[at], cell, before.get(at))
                found.append(self._draws[key])
                before.pop(at, None)
                if cell != self.nulls[at].rest:
                    before[at] = cell
        return found


def by_reference(sampled: Sampled) -> Questions:
    """Return the questions with the reference's distribution as the null."""
    groups = sampled.names.groups.tolist()
    cells = [np.array([one.cell(group) for group in groups]) for one in sampled.prompts]
    return Questions([one.null for one in sampled.prompts], cells)


def by_own_list(sampled: Sampled, rows: Rows) -> Questions:
    """Return the questions with the endpoint's own lists as the nulls."""
    nulls, cells = [], []
    for prompt, row in zip(sampled.prompts, rows, strict=True):
        listed = as_served(row, K)
        top = tuple(
            TokenLogprob(f"token_id:{ids[0]}", value, ids[0])
            for ids, value in zip(listed.cells, listed.logprobs, strict=True)
        )
        read = read_by_own_list(_exchange(prompt, Position(top[0], top)), prompt, sampled.vocabulary, K)
        assert read is not None
        cell = np.full(row.size, read.null.rest)
        for ids, at in read.cells.items():
            cell[ids] = at
        nulls.append(read.null)
        cells.append(cell)
    return Questions(nulls, cells)


def _exchange(prompt: SampledPrompt, position: Position) -> Exchange:
    request = Request("sampled", messages=prompt.prompt.messages)
    return Exchange(
        "sampled", "served", request, datetime(2026, 3, 1, tzinfo=UTC), Timings(0.0), top_logprobs=(position,)
    )


def tempered(factor: float) -> Alter:
    """Return what a temperature of ``factor`` makes of probabilities."""
    return lambda p: p ** (1 / factor)


def cut(kept: Callable[[np.ndarray], np.ndarray]) -> Alter:
    """Return what keeping some tokens makes of probabilities; ``kept`` takes them sorted, best first."""

    def alter(p: np.ndarray) -> np.ndarray:
        order = np.argsort(-p, kind="stable")
        left = np.zeros_like(p)
        left[order] = np.where(kept(p[order]), p[order], 0.0)
        return left

    return alter


FAULTS: dict[str, Alter] = {
    "temperature 0.8": tempered(0.8),
    "temperature 0.9": tempered(0.9),
    "temperature 1.1": tempered(1.1),
    "temperature 1.25": tempered(1.25),
    "top token dropped": cut(lambda p: np.arange(p.size) > 0),
    "greedy": cut(lambda p: np.arange(p.size) == 0),
    "top-k 20": cut(lambda p: np.arange(p.size) < 20),
    "top-p 0.9": cut(lambda p: np.cumsum(p) - p < 0.9),
}


def cumulative(rows: Rows, alter: Alter = lambda p: p) -> np.ndarray:
    """Return the cumulative, not normalised, probabilities of altered rows."""
    return np.cumsum([alter(np.exp(row.astype(np.float64))) for row in rows], axis=1)


def decided(draws: list[Draw]) -> tuple[State, int, str]:
    """Return the state, the draws spent and the alternative named, as the nightly part decides."""
    for n in range(PROMPTS, MOST + PROMPTS, PROMPTS):
        night = judge(draws[:n])
        if night.state is not State.UNKNOWN:
            break
    return night.state, night.n, night.best.name


def honest_nights(
    name: str, questions: Questions, nights: int, draw_rows: Callable[[], np.ndarray]
) -> dict[str, object]:
    """Return how often honest nights are beyond each level, and how soon they are OK."""
    rng = np.random.default_rng(11)
    largest, states = [], []
    shares = np.empty(0)
    for night in range(nights):
        if night % A_NOISE == 0:
            shares = draw_rows()
        draws = questions.night(shares, rng)
        evidence = np.cumsum([one.evidence for one in draws], axis=0)
        largest.append(float((logsumexp(evidence, axis=1) - np.log(len(ALTERNATIVES))).max()))
        if night < FAULTY:
            states.append(decided(draws))
    beyond = {f"beyond_{level}": int((np.array(largest) >= np.log(level)).sum()) for level in LEVELS}
    return {
        "null": name,
        "nights": nights,
        **beyond,
        "ok": sum(state is State.OK for state, _, _ in states) / len(states),
        **_draws([n for _, n, _ in states]),
    }


def faulty_nights(name: str, fault: str, questions: Questions, rows: Rows) -> dict[str, object]:
    """Return how often and how soon a fault is CHANGED, and how often it is named rightly."""
    rng = np.random.default_rng(12)
    shares = cumulative(rows, FAULTS[fault])
    nights = [decided(questions.night(shares, rng)) for _ in range(FAULTY)]
    found = [(n, best) for state, n, best in nights if state is State.CHANGED]
    return {
        "null": name,
        "fault": fault,
        "found": len(found) / FAULTY,
        "named": max({best for _, best in found}, key=[best for _, best in found].count) if found else None,
        **_draws([n for n, _ in found]),
    }


def _draws(counts: list[int]) -> dict[str, float]:
    if not counts:
        return {}
    return {"draws_median": float(np.median(counts)), "draws_90_%": float(np.quantile(counts, 0.9))}


def noisy(rows: Rows, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Return cumulative rows with fresh noise of SD ``spread`` on the logits."""
    noise = rng.standard_normal(rows.shape, dtype=np.float32) * np.float32(spread)
    return np.cumsum(np.exp(rows + noise), axis=1, dtype=np.float64)


async def measure() -> dict[str, object]:
    """Compute the rows and draw the nights."""
    reference = open_reference("smollm2-135m", device="cpu")
    truth = SampledTruth(reference, seed=0, floor_dtype="bf16", candidates=CANDIDATES, prompts=PROMPTS)
    sampled = await truth.sampled()
    ids = [one.ids for one in sampled.prompts]
    exact = np.array([await reference.next_token(one) for one in ids])
    served = np.array(await reference.jittered(ids, dtype="bf16", seed=977))
    await reference.aclose()
    kl = float((np.exp(served.astype(np.float64)) * (served.astype(np.float64) - exact)).sum(axis=1).mean())
    spread = float(np.sqrt(2 * kl))  # of normal noise on logits that gives this divergence
    named, own = by_reference(sampled), by_own_list(sampled, served)
    shares, rng = cumulative(served), np.random.default_rng(13)
    honest = [
        honest_nights("own list", own, HONEST, lambda: shares),
        honest_nights("reference", named, HONEST, lambda: shares),
        honest_nights("reference, fresh noise", named, NOISY, lambda: noisy(exact, spread, rng)),
        honest_nights("reference, twice the noise", named, NOISY, lambda: noisy(exact, 2 * spread, rng)),
    ]
    faults = [
        faulty_nights(name, fault, questions, served)
        for name, questions in (("own list", own), ("reference", named))
        for fault in FAULTS
    ]
    return {
        "prompts": PROMPTS,
        "candidates": CANDIDATES,
        "most_draws": MOST,
        "seed_pairs": PAIRS,
        "tokens_a_draw": float(np.mean([len(one) for one in ids])),
        "floor_kl": kl,
        "honest": honest,
        "faults": faults,
    }


def holds(found: dict) -> bool:
    """Return whether every bound holds; twice the floor's noise is shown, not promised."""
    promised = [row for row in found["honest"] if "twice" not in row["null"]]
    rare = all(
        row[f"beyond_{level}"] <= binom.ppf(SURE, row["nights"], 1 / level)
        for row in promised
        for level in LEVELS
    )
    return rare and all(
        row["found"] >= (0.8 if row["fault"] == "top-p 0.9" else 0.95) for row in found["faults"]
    )


def main() -> int:
    """Print the tables and return 1 where a bound does not hold."""
    found = asyncio.run(measure())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{found['tokens_a_draw']:.0f} input tokens a draw; floor {found['floor_kl']:.2g} nats")
    for rows in (found["honest"], found["faults"]):
        print("| " + " | ".join(rows[0]) + " |")
        for row in rows:
            print(
                "| " + " | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()) + " |"
            )
    return int(not holds(found))


if __name__ == "__main__":
    sys.exit(main())
