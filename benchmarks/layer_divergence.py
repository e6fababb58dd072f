"""How long does the divergence by layer of a whole model take, and do the shares add up?

``ringtrue layers`` on the embedded model, float32 against int4: swap and
prefix of all 30 layers over 1,024 tokens and the controls, loading included;
with ``--modules 3`` also the modules of the three worst layers.

    python benchmarks/layer_divergence.py [--candidate smollm2-135m@int4] [--modules 0] [--device auto]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from rich.console import Console

from evals.compare.measuring import ComparePlan
from evals.layers.measuring import run_layers
from ringtrue.progress import Lines

RESULTS = Path(__file__).parent / "results" / "layer_divergence.json"
MOST = 180.0  # seconds
ADDITIVE = (0.8, 1.1)


def main() -> int:
    """Print the figures and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", default="smollm2-135m")
    parser.add_argument("--candidate", default="smollm2-135m@int4")
    parser.add_argument("--modules", type=int, default=0)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    plan = ComparePlan(options.reference, options.candidate, length=256, count=4, device=options.device)
    started, cpu = time.perf_counter(), time.process_time()
    found = run_layers(plan, Lines(Console(stderr=True)), modules_in=options.modules)
    row = {
        "reference": found.reference,
        "candidate": found.candidate,
        "tokens": found.positions,
        "layers": len(found.layers),
        "modules": len(found.modules),
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "full_kl": found.full_kl,
        "additivity": found.additivity,
        "control": found.control,
        "worst": [one.layer for one in sorted(found.layers, key=lambda one: -one.swap_kl)[:3]],
    }
    RESULTS.write_text(json.dumps(row, indent=1))
    print(json.dumps(row, indent=1))
    additive = found.additivity is not None and ADDITIVE[0] <= found.additivity <= ADDITIVE[1]
    return int(row["seconds"] > MOST or found.control != 0 or not additive)


if __name__ == "__main__":
    sys.exit(main())
