"""Does an honest endpoint ever get a verdict other than OK?

One honest bf16 replica over real HTTP, examined once for each of 20 seeds. A
seed draws the prompts, the order in which they are sent (and so the batches
they share), and the floor's batches. Every verdict must be OK. A second column
asks too few prompts: every logprob verdict must then be UNKNOWN.

    python benchmarks/honest_seeds.py [SEEDS]      # about half a minute a seed on two cores
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from collector.cycle import Models, over_http, run_cycle
from probes.clock import system_clock
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.config import settings_from
from ringtrue.progress import Lines
from ringtrue.records import State, Verdict
from ringtrue.store import open_store

RESULTS = Path(__file__).parent / "results" / "honest_seeds.json"
ENOUGH = ((32, 48), (128, 16), (512, 4))
TOO_FEW = ((32, 12), (128, 3))
MODEL = "smollm2-135m"

Buckets = Sequence[tuple[int, int]]


class Quiet(Lines):
    """Progress that only counts."""

    def say(self, line: str) -> None:
        """Say nothing."""


async def night(
    reference: LocalReference, address: str, folder: Path, buckets: Buckets, seed: int
) -> tuple[Verdict, ...]:
    """Examine the replica once and return its verdicts."""
    clock = system_clock()
    settings = settings_from(
        {
            "store": {"url": f"sqlite:///{folder / f'{seed}-{len(buckets)}.db'}"},
            "probe": {"buckets": buckets, "seed": seed},
            "endpoints": [
                {
                    "name": "honest",
                    "base_url": f"{address}/v1",
                    "model": MODEL,
                    "dialect": "vllm",
                    "limits": {"max_in_flight": 16, "first_byte_timeout": 600.0},
                }
            ],
        },
        source="benchmark",
    )
    store = await asyncio.to_thread(open_store, settings.store.url, clock=clock.now)
    try:
        progress = Quiet(Console(stderr=True))
        result = await run_cycle(
            settings,
            store=store,
            models=Models(reference),
            connect=over_http({}, clock),
            clock=clock,
            progress=progress,
        )
    finally:
        store.close()
    return result.verdicts


async def measure(seeds: int) -> list[dict[str, object]]:
    """Run all nights and print a line for each."""
    rows: list[dict[str, object]] = []
    with Engine() as engine, tempfile.TemporaryDirectory() as folder:
        reference = LocalReference(engine, await asyncio.to_thread(engine.load, MODEL))
        app = await asyncio.to_thread(create_app, engine, Replica(MODEL, f"{MODEL}@bf16"))
        async with serve_app(app) as address:
            for seed in range(seeds):
                started = time.perf_counter()
                verdicts = await night(reference, address, Path(folder), ENOUGH, seed)
                few = await night(reference, address, Path(folder), TOO_FEW, seed)
                logprobs = next(v for v in verdicts if v.check == "logprobs")
                rows.append(
                    {
                        "seed": seed,
                        "states": {v.check.value: v.verdict.value for v in verdicts},
                        "kl": logprobs.value,
                        "reason": logprobs.reason,
                        "too_few": next(v.verdict.value for v in few if v.check == "logprobs"),
                        "too_few_reason": next(v.reason for v in few if v.check == "logprobs"),
                        "seconds": round(time.perf_counter() - started, 1),
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> int:
    """Print the tally and return 1 if it is not what it must be."""
    rows = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1))
    states = [state for row in rows for state in dict(row["states"]).values()]  # type: ignore[call-overload]  # as built above
    wrong = sum(state != State.OK for state in states)
    unknown = sum(row["too_few"] == State.UNKNOWN for row in rows)
    print(f"{len(rows)} seeds: {wrong} of {len(states)} verdicts other than OK")
    print(f"too few prompts: UNKNOWN in {unknown} of {len(rows)}")
    return int(bool(wrong) or unknown < len(rows))


if __name__ == "__main__":
    sys.exit(main())
