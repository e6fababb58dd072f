"""Does the reference engine keep its promises on a GPU?

Equality with the CPU's float32 on the same sequences, then the other
benchmarks of the reference engine on the device: tokens a second against the
plain forward pass, memory at 8,192 rows x 152k vocabulary, and the divergence
by layer.

    python benchmarks/gpu_reference.py [--device cuda]      # exits with 3 where there is none
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch

from evals.compare.texts import embedded_sequences
from reference_engine.engine import Engine
from reference_engine.position_scoring import token_logprobs
from reference_engine.scoring import hidden_states

RESULTS = Path(__file__).parent / "results" / "gpu_reference.json"
TOLERANCE = 2e-4  # nats: what two exact computations of one float32 model may differ by
OTHERS = ("reference_scoring.py", "full_vocabulary_memory.py", "layer_divergence.py")


def logprobs(device: str, sequences: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Return the logprobs of all tokens but the first of each sequence, in float32 on ``device``."""
    with Engine(device=device) as engine, torch.inference_mode():
        model = engine.load("smollm2-135m")

        def score(ids: tuple[int, ...]) -> np.ndarray:
            with torch.inference_mode():
                return token_logprobs(
                    model, ids, hidden_states(model, torch.tensor([ids], device=model.device))
                )

        return [engine.call(partial(score, ids)).result() for ids in sequences]


def main() -> int:
    """Print the figures and return 1 if one is out of bounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU here: nothing measured", file=sys.stderr)
        return 3
    with Engine(device="cpu") as engine:
        encode = engine.load("smollm2-135m").codec.encode
        sequences = [
            ids
            for length in (64, 512, 2048)
            for ids in embedded_sequences(encode, length=length, count=4, seed=0)
        ]
    pairs = zip(logprobs("cpu", sequences), logprobs(options.device, sequences), strict=True)
    worst = max(float(np.abs(one - other).max()) for one, other in pairs)
    repeated = zip(logprobs(options.device, sequences), logprobs(options.device, sequences), strict=True)
    row = {
        "device": options.device,
        "name": torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu",
        "largest_difference_from_cpu_nats": worst,
        "repeats_bit_for_bit": all(np.array_equal(one, other) for one, other in repeated),
    }
    print(json.dumps(row, indent=1), flush=True)
    RESULTS.write_text(json.dumps(row, indent=1))
    codes = [
        subprocess.run(  # noqa: S603  # our own scripts
            [sys.executable, str(Path(__file__).with_name(name)), "--device", options.device], check=False
        ).returncode
        for name in OTHERS
    ]
    return int(worst > TOLERANCE or not row["repeats_bit_for_bit"] or any(codes))


if __name__ == "__main__":
    sys.exit(main())
