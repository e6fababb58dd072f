"""How far is each cheaper form of one model from its float32 self?

The table of docs/methods.md: mean KL with its interval over sequences, the
99.9th percentile, agreement of the most likely token, and the bf16 noise floor
on the same positions. Every candidate sees the same slices of the embedded
texts.

    python benchmarks/quantized_candidates.py [--sequences 16] [--length 512] [--device auto]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evals.compare.texts import embedded_sequences
from logprob_drift.full_vocabulary.figure import Figure
from logprob_drift.full_vocabulary.kld_statistics import kld_statistics
from logprob_drift.full_vocabulary.positions import PositionDivergences
from reference_engine.divergence.comparison import compare_models
from reference_engine.divergence.noise import measure_floor
from reference_engine.divergence.states import ExactStates
from reference_engine.engine import Engine

RESULTS = Path(__file__).parent / "results" / "quantized_candidates.json"
CANDIDATES = (
    *("bf16", "fp16", "fp8", "fp8-dynamic", "int8", "int4", "int3"),
    *("q8_0", "q6_k", "q5_1", "q5_0", "q4_1", "q4_0", "kv-fp8", "kv-int8"),
)
HEADS = ("candidate", "mean KL", "98 % interval", "99.9 % KL", "same top, %", "floor", "KL / floor")


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Compare every candidate and print its line."""
    rows: list[dict[str, object]] = []
    with Engine(device=options.device) as engine:
        states = ExactStates(engine.load(options.model))
        sequences = embedded_sequences(
            states.model.codec.encode, length=options.length, count=options.sequences, seed=0
        )
        floor = measure_floor(engine, states, sequences, dtype="bf16", seed=0).kl[0]
        print_row(HEADS)
        for variant in options.candidates:
            started = time.perf_counter()
            candidate = engine.load(f"{options.model}@{variant}")
            found = compare_models(engine, states, candidate, sequences)
            positions = PositionDivergences.from_sequences(found)
            statistics = kld_statistics(positions, np.random.default_rng(0), floor=floor)
            row = {
                "candidate": variant,
                "positions": statistics.positions,
                "sequences": statistics.sequences,
                "kl": as_json(statistics.kl["mean"]),
                "kl_p99.9": as_json(statistics.kl["p99.9"]),
                "same_top": as_json(statistics.same_top),
                "floor": as_json(statistics.floor["mean"]),
                "ratio": as_json(statistics.floor["ratio"]),
                "seconds": time.perf_counter() - started,
            }
            rows.append(row)
            print_row(cells(variant, statistics.kl["mean"], row))
    return rows


def as_json(figure: Figure) -> dict[str, float | None]:
    """Return a figure with its limits."""
    interval = figure.interval
    return {
        "value": figure.value,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }


def cells(variant: str, kl: Figure, row: dict[str, object]) -> Sequence[str]:
    """Return one line of the table."""
    value = {name: one["value"] for name, one in row.items() if isinstance(one, dict)}
    interval = f"{kl.interval.low:.3g} to {kl.interval.high:.3g}" if kl.interval else ""
    return (
        variant,
        f"{value['kl']:.3g}",
        interval,
        f"{value['kl_p99.9']:.3g}",
        f"{value['same_top']:.2f}",
        f"{value['floor']:.3g}",
        f"{value['ratio']:.3g}",
    )


def print_row(line: Sequence[str]) -> None:
    """Print one line as Markdown."""
    print(f"| {' | '.join(line)} |", flush=True)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--candidates", nargs="*", default=CANDIDATES)
    rows = measure(parser.parse_args())
    RESULTS.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
