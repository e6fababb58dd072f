"""How many sessions show that some of them are served by another backend?

Sessions of 8 prompts; a session's score is the log of its mean divergence.
Honest prompts: lognormal, mean 0.0016 nats, SD of the log 0.9, and an effect
that the prompts of one session share (SD 0.2). A bad backend multiplies the
divergence; int4 weights of SmolLM2 are at 200 times the floor. The threshold
is calibrated on 400 honest sessions (by the tail), anew in each run, or on
10,000 (their largest). Bounds: a 5 % mixture at
125 sessions with 95 % power; honest streams within the budget.

    python benchmarks/mixtures.py      # about a minute on one core
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from logprob_drift.alarms.mixture import (
    FALSE_POSITIVE,
    HITS,
    bad_session_threshold,
    detectable_share,
    judge_sessions,
    session_e_values,
    sessions_needed,
)
from logprob_drift.alarms.restarts import sum_over_starts
from ringtrue.e_values import alarm_threshold
from ringtrue.records import State

RESULTS = Path(__file__).parent / "results" / "mixtures.json"
PROMPTS, SESSIONS = 8, 125
CALIBRATIONS = {400: 1000, 10_000: 50}  # honest sessions: thresholds drawn
FACTORS = (3, 10, 30, 200)
SHARES = (0.008, 0.02, 0.05, 0.16)
RUNS = 1000
STREAMS, NIGHTS, YEARS = 200, 365, 20
THRESHOLD = alarm_threshold(STREAMS)


def scores(rng: np.random.Generator, shape: tuple[int, ...], factor: float = 1.0) -> np.ndarray:
    """Return log mean divergence of sessions."""
    prompts = rng.normal(np.log(0.001), 0.9, (*shape, PROMPTS))
    shared = rng.normal(0, 0.2, shape)
    return np.log(np.exp(prompts).mean(axis=-1)) + shared + np.log(factor)


def thresholds(rng: np.random.Generator) -> dict[int, list[float | None]]:
    """Return thresholds by the number of honest sessions they come from."""
    return {
        count: [bad_session_threshold(scores(rng, (count,))) for _ in range(draws)]
        for count, draws in CALIBRATIONS.items()
    }


def false_positives(rng: np.random.Generator, drawn: dict[int, list[float | None]]) -> dict[int, float]:
    """Return the mean probability that an honest session is bad."""
    fresh = scores(rng, (1_000_000,))
    return {count: float(np.mean([(fresh > t).mean() for t in some[:200]])) for count, some in drawn.items()}


def power(rng: np.random.Generator, drawn: dict[int, list[float | None]]) -> list[dict[str, float]]:
    """Return the share of mixtures found in one night, and the share of bad sessions that are seen."""
    rows = []
    for count, some in drawn.items():
        for factor in FACTORS:
            found = dict.fromkeys(SHARES, 0)
            seen = []
            for run in range(RUNS):
                threshold = some[run % len(some)]
                good, bad = scores(rng, (SESSIONS,)), scores(rng, (SESSIONS,), factor)
                seen.append(float((bad > threshold).mean()))
                draw = rng.random(SESSIONS)
                for share in SHARES:
                    night = judge_sessions(np.where(draw < share, bad, good), threshold)
                    found[share] += night.state is State.CHANGED
            shares = {f"share_{share}": hits / RUNS for share, hits in found.items()}
            rows.append({"calibrated_on": count, "factor": factor, "seen": float(np.mean(seen)), **shares})
    return rows


def evidence(bad: np.ndarray, sessions: int) -> np.ndarray:
    """Return the evidence of counts of bad sessions [streams, nights]."""
    values = session_e_values(bad, np.full(bad.shape, sessions))
    return np.mean([sum_over_starts(one).m for one in values], axis=0)


def rare(rng: np.random.Generator) -> dict[str, float]:
    """Return the nights that a share of 0.8 % takes, by evidence over nights and by the rule of one night."""
    counts = rng.binomial(SESSIONS, 0.008, (4 * RUNS, 40))
    first = (evidence(counts, SESSIONS) >= THRESHOLD).argmax(axis=1) + 1
    one = (counts >= HITS).argmax(axis=1) + 1
    return {
        "nights_median": float(np.median(first)),
        "nights_95_%": float(np.quantile(first, 0.95)),
        "one_night_rule_median": float(np.median(one)),
        "one_night_rule_95_%": float(np.quantile(one, 0.95)),
    }


def honest(rng: np.random.Generator) -> dict[str, int]:
    """Return alarms of 20 fleet-years of honest streams, each with bad sessions at the calibrated rate."""
    nightly = over_nights = 0
    for _ in range(YEARS):
        counts = rng.binomial(SESSIONS, FALSE_POSITIVE, (STREAMS, NIGHTS))
        nightly += int((counts >= HITS).any(axis=1).sum())
        over_nights += int((evidence(counts, SESSIONS) >= THRESHOLD).any(axis=1).sum())
    return {"fleet_years": YEARS, "one_night_rule": nightly, "over_nights": over_nights}


def main() -> int:
    """Print the tables and return 1 where a bound does not hold."""
    rng = np.random.default_rng(20_261)
    drawn = thresholds(rng)
    found = {
        "sessions_needed": {str(share): sessions_needed(share) for share in SHARES},
        "detectable_share": {str(n): detectable_share(n) for n in (38, 125, 785)},
        "false_positives": false_positives(rng, drawn),
        "power": power(rng, drawn),
        "rare": rare(rng),
        "honest": honest(rng),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1))
    print(f"sessions needed: {found['sessions_needed']}; detectable share: {found['detectable_share']}")
    print(f"honest sessions beyond the threshold: {found['false_positives']}")
    print(
        "| calibrated on | factor | bad sessions seen | "
        + " | ".join(f"{share:.1%}" for share in SHARES)
        + " |"
    )
    for row in found["power"]:
        print("| " + " | ".join(f"{value:.4g}" for value in row.values()) + " |")
    print(f"0.8 % at {SESSIONS} sessions a night: {found['rare']}")
    print(f"honest: {found['honest']}")
    return int(not holds(found))


def holds(found: dict) -> bool:
    """Return whether every bound holds."""
    gross = [row for row in found["power"] if row["factor"] == FACTORS[-1]]
    return (
        all(row["share_0.05"] >= 0.95 - 2 * (0.05 * 0.95 / RUNS) ** 0.5 for row in gross)
        and found["sessions_needed"]["0.05"] <= SESSIONS
        and all(rate <= 1.2 * FALSE_POSITIVE for rate in found["false_positives"].values())
        and found["honest"]["one_night_rule"] <= 12
        and found["honest"]["over_nights"] <= 12
    )


if __name__ == "__main__":
    sys.exit(main())
