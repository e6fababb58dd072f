"""How much memory does a full-vocabulary divergence need beyond weights and states?

Two synthetic heads over 152k tokens, 8,192 rows of states: the logits of one
side alone would be 5 GB. The peak of the process (or of the GPU) while the
divergence runs is compared with what was held before, and sampled rows with a
naive computation in float64.

    python benchmarks/full_vocabulary_memory.py [--rows 8192] [--vocabulary 151936] [--device cpu]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from reference_engine.divergence.tiles import tiled_divergence

RESULTS = Path(__file__).parent / "results" / "full_vocabulary_memory.json"
MOST = 2**30  # bytes
RELATIVE, ABSOLUTE = 1e-5, 1e-9
SAMPLE = 16  # rows checked against float64


class Peak:
    """The most memory held since it was made, beyond what was held then."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self._before = torch.cuda.memory_allocated(device)
        else:
            Path("/proc/self/clear_refs").write_text("5")  # resets the peak, which counts from the start else
            self._before = _status("VmRSS")

    def extra(self) -> int:
        """Return bytes."""
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device) - self._before
        return _status("VmHWM") - self._before


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


@torch.inference_mode()
def measure(rows: int, vocabulary: int, hidden: int, device: torch.device) -> dict[str, object]:
    """Run the divergence of a perturbed head from its original."""
    generator = torch.Generator().manual_seed(0)
    head = (torch.randn(vocabulary, hidden, generator=generator) * 3 / hidden**0.5).to(device)
    other = head + 0.02 * torch.randn(vocabulary, hidden, generator=generator).to(device) / hidden**0.5
    states = torch.randn(rows, hidden, generator=generator).to(device)
    targets = torch.randint(vocabulary, (rows,), generator=generator).to(device)
    sample = range(0, rows, max(1, rows // SAMPLE))
    seen: dict[tuple[str, int], torch.Tensor] = {}  # the very logits that were compared, of sampled rows

    def logits(side: str, weights: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        tile = states[start:stop] @ weights.T
        seen.update({(side, row): tile[row - start].clone() for row in sample if start <= row < stop})
        return tile

    peak = Peak(device)
    started = time.perf_counter()
    found = tiled_divergence(
        partial(logits, "p", head), partial(logits, "q", other), targets, vocabulary=vocabulary
    )
    seconds = time.perf_counter() - started
    extra = peak.extra()
    naive = []
    for row in sample:
        p, q = (torch.log_softmax(seen[side, row].double(), -1) for side in ("p", "q"))
        naive.append(float((p.exp() * (p - q)).sum()))
    ours = found.kl[list(sample)]
    worst = float(np.max(np.abs(ours - naive) / np.maximum(np.abs(naive), ABSOLUTE / RELATIVE)))
    return {
        "rows": rows,
        "vocabulary": vocabulary,
        "hidden": hidden,
        "device": str(device),
        "logits_of_one_side_gib": rows * vocabulary * 4 / 2**30,
        "extra_mib": extra / 2**20,
        "seconds": seconds,
        "rows_per_s": rows / seconds,
        "mean_kl": float(found.kl.mean()),
        "worst_relative_error": worst,
    }


def main() -> int:
    """Print the figures and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_192)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    row = measure(options.rows, options.vocabulary, options.hidden, torch.device(options.device))
    RESULTS.write_text(json.dumps(row, indent=1))
    print(json.dumps(row, indent=1))
    return int(
        float(str(row["extra_mib"])) * 2**20 > MOST or float(str(row["worst_relative_error"])) > RELATIVE
    )


if __name__ == "__main__":
    sys.exit(main())
