"""How soon is another model found by tokens alone, and how often is an honest endpoint accused?

Border inputs by simulation: 10 requests a night, one for each of 10 border
prompts, correlated inside a night (beta-binomial), honest prompts violating
their support at the rate that 3,000 replays leave possible. The swapped model
answers a border prompt outside its support with a probability that is the
first column. Then honest greedy margins and honest samples: how often each
test fires. Bounds: at 0.9, the first batch at correlations up to 0.05 and the
second at 0.3, in 95 % of runs; honest streams within the budget.

    python benchmarks/token_only.py      # about a minute on one core
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from logprob_drift.token_only.border_inputs import violation_alarms
from logprob_drift.token_only.greedy_margins import CLIP, compare_with_replay
from logprob_drift.token_only.samples import permutation_test
from ringtrue.e_values import alarm_threshold
from ringtrue.records import State

RESULTS = Path(__file__).parent / "results" / "token_only.json"
PROMPTS = 10
NULL_RATE = 1e-3  # (0 + 3) / (3,000 + 3): what the set-up leaves possible
STREAMS, NIGHTS, YEARS = 200, 365, 20
THRESHOLD = alarm_threshold(STREAMS)
CORRELATIONS = (0.0, 0.05, 0.1, 0.3)
DEPARTS = (0.5, 0.7, 0.8, 0.9)
WARM_UP = 30  # honest nights before the swap
RUNS = 4000


def correlated(
    rng: np.random.Generator, rate: float, correlation: float, shape: tuple[int, int]
) -> np.ndarray:
    """Return violations among `PROMPTS` prompts whose answers of one night share a rate."""
    if correlation == 0:
        return rng.binomial(PROMPTS, rate, shape)
    size = (1 - correlation) / correlation
    return rng.binomial(PROMPTS, rng.beta(rate * size, (1 - rate) * size, shape))


def alarms(violating: np.ndarray, correlation: float) -> np.ndarray:
    """Return where the streams alarm."""
    prompts = np.full(violating.shape, PROMPTS)
    return violation_alarms(
        violating, prompts, rate=NULL_RATE, correlation=correlation, threshold=THRESHOLD
    ).alarms


def swapped(rng: np.random.Generator) -> list[dict[str, float]]:
    """Return the share of swaps found by each batch."""
    rows = []
    for correlation in CORRELATIONS:
        for departs in DEPARTS:
            violating = correlated(rng, NULL_RATE, correlation, (RUNS, WARM_UP + 4))
            violating[:, WARM_UP:] = correlated(rng, departs, correlation, (RUNS, 4))
            found = alarms(violating, max(correlation, 0.05))[:, WARM_UP:]
            by = np.maximum.accumulate(found, axis=1).mean(axis=0)
            fixed = violating.copy()
            fixed[:, WARM_UP:] = rng.binomial(PROMPTS, departs, (RUNS, 4))
            independent = np.maximum.accumulate(alarms(fixed, max(correlation, 0.05))[:, WARM_UP:], axis=1)
            rows.append(
                {
                    "correlation": correlation,
                    "departs": departs,
                    **{f"batch_{i + 1}": float(share) for i, share in enumerate(independent.mean(axis=0))},
                    **{f"batch_{i + 1}_clustered": float(share) for i, share in enumerate(by)},
                }
            )
    return rows


def honest(rng: np.random.Generator) -> list[dict[str, float]]:
    """Return alarms of 20 fleet-years of honest streams, first alarms of a stream and year counted."""
    rows = []
    for correlation in CORRELATIONS:
        count = 0
        for _ in range(YEARS):
            violating = correlated(rng, NULL_RATE, correlation, (STREAMS, NIGHTS))
            count += int(alarms(violating, max(correlation, 0.05)).any(axis=1).sum())
        rows.append({"correlation": correlation, "fleet_years": YEARS, "alarms": count})
    return rows


def underestimated(rng: np.random.Generator) -> int:
    """Return the alarms of one fleet-year when nights are correlated by 0.3 and judged as if by 0.05."""
    return int(alarms(correlated(rng, NULL_RATE, 0.3, (STREAMS, NIGHTS)), 0.05).any(axis=1).sum())


def margins(rng: np.random.Generator, runs: int = 2000) -> dict[str, float]:
    """Return how often 200 prompts of 50 tokens are CHANGED: honest, and with three times the near ties."""

    def night(flips: float) -> np.ndarray:
        gap = rng.exponential(0.05, (200, 50)) * (rng.random((200, 50)) < flips)
        return np.clip(gap, 0, CLIP).mean(axis=1)

    def share(flips: float, count: int) -> float:
        states = [compare_with_replay(night(flips), night(0.02), rng).state for _ in range(count)]
        return states.count(State.CHANGED) / count

    return {
        "runs": runs,
        "honest": share(0.02, runs),
        "ties_x_1.5": share(0.03, runs // 4),
        "ties_x_3": share(0.06, runs // 4),
    }


def samples(rng: np.random.Generator, runs: int = 1000) -> dict[str, float]:
    """Return how often MMD has p <= 1 %: 25 prompts x 10 answers of 50 tokens a side, honest and 10 % off."""

    def answers(off: float) -> np.ndarray:
        tokens = np.minimum(rng.geometric(0.4, (25, 10, 50)), 20)
        return np.where(rng.random(tokens.shape) < off, 21, tokens)

    def share(off: float, count: int) -> float:
        return float(
            np.mean(
                [permutation_test(answers(0), answers(off), rng, 199).p_value <= 0.01 for _ in range(count)]
            )
        )

    return {"runs": runs, "honest": share(0.0, runs), "tokens_10_%_off": share(0.1, runs // 10)}


def main() -> int:
    """Print the tables and return 1 where a bound does not hold."""
    rng = np.random.default_rng(20_260)
    found = {
        "threshold": THRESHOLD,
        "null_rate": NULL_RATE,
        "swapped": swapped(rng),
        "honest": honest(rng),
        "underestimated": underestimated(rng),
        "margins": margins(rng),
        "samples": samples(rng),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1))
    print("| correlation | departs | batch 1 | 2 | 3 | 4 | (departures clustered) 1 | 2 | 3 | 4 |")
    for row in found["swapped"]:
        print("| " + " | ".join(f"{value:.3g}" for value in row.values()) + " |")
    for row in found["honest"]:
        print(f"honest, correlation {row['correlation']}: {row['alarms']} alarms in {YEARS} fleet-years")
    print(f"correlated by 0.3, judged by 0.05: {found['underestimated']} alarms in a fleet-year")
    print(f"greedy margins, share CHANGED: {found['margins']}")
    print(f"samples, share p <= 1 %: {found['samples']}")
    return int(not holds(found))


def holds(found: dict) -> bool:
    """Return whether every bound holds."""
    sharp = {row["correlation"]: row for row in found["swapped"] if row["departs"] == 0.9}
    return (
        all(sharp[rho]["batch_1"] >= 0.95 for rho in (0.0, 0.05))
        and sharp[0.3]["batch_2"] >= 0.95
        and all(row["alarms"] <= 12 for row in found["honest"])
        and found["margins"]["honest"] <= 0.015
        and found["samples"]["honest"] <= 0.015 + 3 * (0.01 / 1000) ** 0.5
    )


if __name__ == "__main__":
    sys.exit(main())
