"""Does the sessions part find a mixture behind a real engine, and leave an honest pool alone?

Pools of bf16 backends of SmolLM2-135M over loopback HTTP, some sessions of
which meet int4 weights or corrupted states instead. Each run is a night: keys
are new, so backends are drawn anew. Four nights go side by side, so that their
requests share batches. Then 2,000 honest nights of 125 sessions, drawn from
honest sessions that the threshold was not calibrated on. Bounds: no alarm at
an honest pool; every mixture of 16 % is found; of those of 5 %, as many as
binomial chance allows.

    python benchmarks/mixture_engine.py [NIGHTS]      # some 3 minutes on two quiet cores
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.stats import binom

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.sessions.part import SessionsPart
from evals.truth import FloorTable
from logprob_drift.alarms.mixture import HITS
from logprob_drift.alarms.session_scores import fingerprint, judge_relative, session_scores
from probes.clock import system_clock
from probes.http_endpoint import connect
from reference_engine.local_reference import LocalReference, open_reference
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.records import EndpointSpec, Limits, Observation, State
from ringtrue.verdict import state_of

RESULTS = Path(__file__).parent / "results" / "mixture_engine.json"
MODEL = "smollm2-135m"
HONEST = f"{MODEL}@bf16"
SESSIONS = 125
CALIBRATION = 200
SIDE_BY_SIDE = 4
RESAMPLED = 2_000
BAD_LUCK = 0.01  # probability of fewer finds than the bound asks for, by binomial chance

POOLS = (
    ("honest", HONEST, Faults()),
    ("int4", f"{MODEL}@int4+bf16", Faults(share=0.05)),
    ("int4", f"{MODEL}@int4+bf16", Faults(share=0.16)),
    ("corrupt", HONEST, Faults(share=0.05, corrupt_beyond=30)),
    ("corrupt", HONEST, Faults(share=0.16, corrupt_beyond=30)),
)


@dataclass
class Kept:
    """A floor cache in memory: the part's own draw, to be looked at afterwards."""

    tables: dict[str, FloorTable] = field(default_factory=dict)

    async def get(self, key: str) -> FloorTable | None:
        """Return the table kept under ``key``."""
        return self.tables.get(key)

    async def put(self, key: str, table: FloorTable) -> None:
        """Keep ``table`` under ``key``."""
        self.tables[key] = table


async def night(spec: EndpointSpec, part: SessionsPart, run: str) -> dict[str, float]:
    """Return what one night found and what it cost."""

    async def emit(_observations: Sequence[Observation]) -> None:
        return None

    async with aclosing(connect(spec, {})) as endpoint:
        asker = Asker(
            endpoint,
            Scribe(spec.name, run, part.name),
            seed=0,
            clock=system_clock(),
            emit=emit,
            on_progress=lambda _count: None,
            record=None,
        )
        known = Known(k=20, trusted=True, scaling=None, logprobs=State.OK)
        (finding,) = await part.examine(asker, known)
    usages = [exchange.usage for exchange in asker.exchanges if exchange.usage is not None]
    return {
        "found": float(state_of(finding) is State.CHANGED),
        "sessions": finding.n,
        "bad": finding.evidence["bad"],
        "requests": len(asker.exchanges),
        "tokens": sum(usage.prompt_tokens or 0 for usage in usages),
        "times_the_usual": finding.evidence["times_the_usual"],
    }


async def nights_of(
    reference: LocalReference, part: SessionsPart, pool: tuple[str, str, Faults], nights: int
) -> dict[str, object]:
    """Return the nights of one pool."""
    name, model, faults = pool
    share = faults.share if faults != Faults() else 0.0
    app = create_app(reference.engine, Replica("smollm2", model, faults=faults, healthy=HONEST))
    found: list[dict[str, float]] = []
    async with serve_app(app) as url:
        limits = Limits(max_in_flight=8)
        spec = EndpointSpec(f"{name}-{share}", url, "smollm2", dialect="vllm", limits=limits)
        for start in range(0, nights, SIDE_BY_SIDE):
            runs = range(start, min(nights, start + SIDE_BY_SIDE))
            found += await asyncio.gather(*(night(spec, part, f"night-{run}") for run in runs))
    means = {key: float(np.mean([one[key] for one in found])) for key in ("sessions", "requests", "tokens")}
    hits = int(sum(one["found"] for one in found))
    return {"pool": name, "share": share, "nights": nights, "found": hits, **means}


def resampled(table: FloorTable, rng: np.random.Generator) -> dict[str, float]:
    """Return the false alarms of honest nights drawn from the half that did not calibrate."""
    divergences = np.array([[row[0] for row in rows] for rows in table.values()]).T
    scores = session_scores(divergences)
    half = scores.size // 2
    limit = fingerprint(scores[:half])
    assert limit is not None
    drawn = rng.choice(scores[half:], (RESAMPLED, SESSIONS))
    alarms = sum(judge_relative(one, limit).state is State.CHANGED for one in drawn)
    return {
        "nights": RESAMPLED,
        "alarms": alarms,
        "spread": float(scores.std()),
        "times_the_usual": limit.factor,
        "largest_honest": float(np.exp(scores.max() - np.median(scores))),
    }


async def measure(nights: int) -> dict[str, object]:
    """Return all tables."""
    reference = open_reference(MODEL, device="cpu")
    kept = Kept()
    part = SessionsPart(
        reference, seed=0, floor_dtype="bf16", sessions=SESSIONS, calibration=CALIBRATION, cache=kept
    )
    rows = []
    for pool in POOLS:
        began = time.perf_counter()
        rows.append(await nights_of(reference, part, pool, nights))
        print(f"{rows[-1]}  ({time.perf_counter() - began:.0f} s)", file=sys.stderr)
    (table,) = kept.tables.values()
    await part.aclose()
    await reference.aclose()
    return {"pools": rows, "honest": resampled(table, np.random.default_rng(7))}


def holds(found: dict) -> bool:
    """Return whether every bound holds."""
    for row in found["pools"]:
        if row["share"] == 0.0:
            if row["found"]:
                return False
            continue
        power = binom.sf(HITS - 1, SESSIONS, row["share"])
        if row["found"] < binom.ppf(BAD_LUCK, row["nights"], power):
            return False
    return found["honest"]["alarms"] == 0


def main() -> int:
    """Print the tables and return 1 where a bound does not hold."""
    nights = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    found = asyncio.run(measure(nights))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1))
    print("| pool | share | nights | found | sessions asked | requests | tokens |")
    print("|---|---|---|---|---|---|---|")
    for row in found["pools"]:
        print(
            f"| {row['pool']} | {row['share']:.0%} | {row['nights']} | {row['found']} | "
            f"{row['sessions']:.0f} | {row['requests']:.0f} | {row['tokens']:,.0f} |"
        )
    print(f"honest sessions, resampled: {found['honest']}")
    return int(not holds(found))


if __name__ == "__main__":
    sys.exit(main())
