"""How many nights until longer answers, more capped ones, or more reasoning alarm, at 60 answers a night?

Log length: answers vary by an SD of 0.3 around their prompt's usual length
(0.6 where prompts change every night), nights by 0.03. Cap-hits: independent
answers, and answers of one night correlated by 0.02. Reasoning share: 0.4, SD
0.1 an answer (0.2 where prompts change), 0.01 a night. Nights follow AR(1)
with 0.3. The change comes after 45 nights; A is that of 200 streams and three
numbers each, one false alarm a year in all. Bounds: no alarm on honest streams in
5 fleet-years, and none beyond the budget where answers of a night resemble
each other.

    python benchmarks/lengths.py      # about a minute on one core
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from logprob_drift.alarms.metric import Metric
from logprob_drift.alarms.night_detector import Rule, detect
from logprob_drift.token_only.lengths import LOG_LENGTH, REASONING_SHARE
from ringtrue.e_values import alarm_threshold
from ringtrue.rate_change import rate_changes

RESULTS = Path(__file__).parent / "results" / "lengths.json"
ANSWERS, WARM_UP, AFTER = 60, 45, 30
STREAMS, NIGHTS, YEARS, RUNS = 200, 365, 5, 1000
THRESHOLD = alarm_threshold(STREAMS, detectors=3)
AR = 0.3

Simulate = Callable[[np.random.Generator, tuple[int, int], np.ndarray], np.ndarray]
"""Returns each stream's first alarm, -1 for none; the last argument is 1 on nights after the change."""


def night_effects(rng: np.random.Generator, shape: tuple[int, int], sd: float) -> np.ndarray:
    """Return what the answers of a night share, correlated from night to night."""
    noise = rng.normal(0, sd, (shape[0], shape[1] + 50))
    return lfilter([np.sqrt(1 - AR**2)], [1, -AR], noise, axis=1)[:, 50:]


def number(metric: Metric, centre: float, shift: float, spread: float, night: float) -> Simulate:
    """Return a simulation of a mean over answers."""

    def simulate(rng: np.random.Generator, shape: tuple[int, int], changed: np.ndarray) -> np.ndarray:
        own = rng.normal(0, spread / np.sqrt(ANSWERS), shape)
        values = centre + shift * changed + own + night_effects(rng, shape, night)
        return detect(values, metric, Rule(THRESHOLD)).first

    return simulate


def count(before: float, after: float, correlation: float) -> Simulate:
    """Return a simulation of counted answers."""

    def simulate(rng: np.random.Generator, shape: tuple[int, int], changed: np.ndarray) -> np.ndarray:
        rate = np.where(changed > 0, after, before) * np.ones(shape)
        if correlation:
            size = (1 - correlation) / correlation
            rate = rng.beta(rate * size, (1 - rate) * size)
        events = rng.binomial(ANSWERS, rate).astype(np.float64)
        return rate_changes(events, np.full(shape, float(ANSWERS)), THRESHOLD).first

    return simulate


CASES: dict[str, Simulate] = {
    "length +20 %, same prompts": number(LOG_LENGTH, 5.0, float(np.log(1.2)), 0.3, 0.03),
    "length +20 %, changing prompts": number(LOG_LENGTH, 5.0, float(np.log(1.2)), 0.6, 0.03),
    "cap-hit 1 -> 5 %, independent": count(0.01, 0.05, 0.0),
    "cap-hit 1 -> 5 %, correlation 0.02": count(0.01, 0.05, 0.02),
    "cap-hit 1 -> 20 %, correlation 0.02": count(0.01, 0.20, 0.02),
    "reasoning share +20 %, same prompts": number(REASONING_SHARE, 0.4, 0.08, 0.1, 0.01),
    "reasoning share +20 %, changing prompts": number(REASONING_SHARE, 0.4, 0.08, 0.2, 0.01),
}


def measure(simulate: Simulate, rng: np.random.Generator) -> dict[str, float | None]:
    """Return nights to alarm, counted from 1 for the first changed night, and honest alarms."""
    nights = WARM_UP + AFTER
    changed = (np.arange(nights) >= WARM_UP).astype(np.float64)
    first = simulate(rng, (RUNS, nights), changed)
    early = int(((first >= 0) & (first < WARM_UP)).sum())
    late = np.where(first < 0, np.inf, first - WARM_UP + 1)[(first < 0) | (first >= WARM_UP)]
    median, ninety = np.quantile(late, [0.5, 0.9], method="higher")
    honest = sum(int((simulate(rng, (STREAMS, NIGHTS), np.zeros(NIGHTS)) >= 0).sum()) for _ in range(YEARS))
    return {
        "nights_median": float(median) if np.isfinite(median) else None,
        "nights_90_%": float(ninety) if np.isfinite(ninety) else None,
        f"found_in_{AFTER}": float(np.isfinite(late).mean()),
        "alarms_before_the_change": early,
        "honest_alarms": honest,
    }


def main() -> int:
    """Print the table and return 1 where a bound does not hold."""
    rng = np.random.default_rng(20_262)
    rows = {name: measure(simulate, rng) for name, simulate in CASES.items()}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"threshold": THRESHOLD, "fleet_years": YEARS, "cases": rows}, indent=1))
    print(f"| {ANSWERS} answers a night | median | 90 % | found in {AFTER} | early | honest alarms |")
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join("-" if v is None else f"{v:g}" for v in row.values()) + " |")
    clustered = [row["honest_alarms"] for name, row in rows.items() if "correlation" in name]
    others = [row["honest_alarms"] for name, row in rows.items() if "correlation" not in name]
    return int(any(others) or max(clustered) > YEARS)


if __name__ == "__main__":
    sys.exit(main())
