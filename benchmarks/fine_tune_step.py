"""What is the smallest fine-tune step that ten one-token requests see?

One step of AdamW on all weights of SmolLM2 at growing rates, then rounded to
bf16 as it is served. The noise is that of batches: each request shares its
forward pass with others, drawn anew. Two methods on ten requests:

- LT (arXiv 2512.03816): one prompt, its top 20, ten requests before and ten
  after; how often its permutation test fires at 1 %;
- ``ringtrue replay``: ten prompts a night, 14 nights before the step; nights,
  of ten requests each, until the alarm at one false alarm a year in 200 streams.

The first row is honest. Bounds: no alarm of ours there, and the largest step is
seen by both.

    python benchmarks/fine_tune_step.py      # about five minutes on two cores
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from faults.nights import AFTER, Asked, Watcher
from faults.planted import BASE, HONEST, Fault
from faults.rival_runs import LT_REQUESTS, Rivals

from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference

RESULTS = Path(__file__).parent / "results" / "fine_tune_step.json"
RATES = ("1e-6", "1e-5", "3e-5", "1e-4", "3e-4")
REQUESTS = LT_REQUESTS[0]
A_NIGHT = Asked(prompts=REQUESTS, length=16, times=1)


def measure(engine: Engine) -> list[dict[str, Any]]:
    """Return and print a row for each step."""
    reference = LocalReference(engine, engine.load(BASE))
    watcher, rivals = Watcher(engine, reference, A_NIGHT), Rivals(engine, reference)
    steps = [Fault(rate, f"{BASE}@tuned:steps=1:rate={rate}+bf16") for rate in RATES]
    rows = []
    for seed, fault in enumerate((HONEST, *steps), start=1):
        lt = rivals.logprobs(fault, (REQUESTS,))[0]
        seen = watcher.watch(fault, seed=seed)
        rows.append({"step": fault.name, "lt": lt.power, "runs": lt.runs, "nights": seen.nights})
        waited = f"not in {AFTER}" if seen.nights is None else f"{seen.nights} nights"
        print(f"{fault.name:10}LT fires in {lt.power:.0%} of {lt.runs} tests; ringtrue: {waited}", flush=True)
    return rows


def main() -> int:
    """Return 1 if a bound does not hold."""
    with Engine() as engine:
        rows = measure(engine)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1))
    honest, largest = rows[0], rows[-1]
    return int(honest["nights"] is not None or largest["nights"] is None or largest["lt"] < 1)


if __name__ == "__main__":
    sys.exit(main())
