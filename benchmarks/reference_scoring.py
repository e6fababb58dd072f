"""What do the logprobs of every prompt token cost beyond the plain forward pass?

The plain pass returns all logits, [tokens, vocabulary] in float32, as a
transformers call does. Ours returns the logprob of each token. Both are run
in turns; the figure is the median of the paired ratios.

    python benchmarks/reference_scoring.py [--model smollm2-135m] [--tokens 1024] [--blocks 7] [--device auto]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from evals.compare.texts import embedded_sequences
from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from reference_engine.position_scoring import token_logprobs
from reference_engine.scoring import hidden_states

RESULTS = Path(__file__).parent / "results" / "reference_scoring.json"
MOST = 1.1  # times the plain pass


@torch.inference_mode()
def measure(model: LoadedModel, ids: tuple[int, ...], blocks: int) -> dict[str, object]:
    """Time both in turns, the order changing from block to block, after one round of each."""
    tensor = torch.tensor([ids], device=model.device)

    def plain() -> torch.Tensor:
        logits: torch.Tensor = model.network(input_ids=tensor, use_cache=False).logits
        return logits

    def ours() -> np.ndarray:
        return token_logprobs(model, ids, hidden_states(model, tensor))

    expected = torch.log_softmax(plain()[0], dim=-1)[:-1].gather(1, tensor[0, 1:, None])[:, 0].cpu().numpy()
    difference = float(np.abs(ours() - expected).max())
    seconds: dict[str, list[float]] = {"plain": [], "ours": []}
    for block in range(blocks):
        pair = [("plain", plain), ("ours", ours)]
        for name, run in pair if block % 2 else reversed(pair):
            seconds[name].append(timed(run, model.device))
    ratios = [ours / plain for ours, plain in zip(seconds["ours"], seconds["plain"], strict=True)]
    return {
        "tokens": len(ids),
        "device": str(model.device),
        "blocks": blocks,
        "largest_difference_nats": difference,
        "plain_tokens_per_s": len(ids) / statistics.median(seconds["plain"]),
        "ours_tokens_per_s": len(ids) / statistics.median(seconds["ours"]),
        "ratio_median": statistics.median(ratios),
        "ratios": ratios,
    }


def timed(run: Callable[[], object], device: torch.device) -> float:
    """Return the seconds that one call takes, its results released at once."""
    started = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started


def main() -> int:
    """Print the figures and return 1 if the logprobs cost more than they may."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    with Engine(device=options.device) as engine:
        model = engine.load(options.model)
        [ids] = embedded_sequences(model.codec.encode, length=options.tokens, count=1, seed=0)
        row = engine.call(lambda: measure(model, ids, options.blocks)).result()
    RESULTS.write_text(json.dumps(row, indent=1))
    print(json.dumps({name: value for name, value in row.items() if name != "ratios"}, indent=1))
    return int(float(str(row["ratio_median"])) > MOST)


if __name__ == "__main__":
    sys.exit(main())
