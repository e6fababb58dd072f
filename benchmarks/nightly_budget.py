"""How many input tokens does a whole night cost an endpoint that takes 128k tokens?

The context curve over 128 to 65,536 tokens and every part at its default,
counted on the exact prompts by the embedded model's tokenizer and template,
each part at its largest: an honest endpoint is decided earlier. Bounds: the
parts at most 100,000 tokens, all at most 370,000.

    python benchmarks/nightly_budget.py      # under a minute
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from collector.parts import parts_for
from evals.plan import ExaminePlan
from evals.questions import Questions
from evals.truth import FloorTable, Truth
from probes.rotation import prompts_tonight
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from ringtrue.config import settings_from

RESULTS = Path(__file__).parent / "results" / "nightly_budget.json"
BUCKETS = ((128, 64), (1024, 32), (4096, 16), (16_384, 6), (65_536, 1))
PARTS, ALL = 100_000, 370_000
MODEL = "smollm2-135m"


class Long(LocalReference):
    """The embedded model's tokenizer, as if the model took more tokens; nothing is computed with it."""

    @property
    def context_length(self) -> int:
        """131,072 tokens."""
        return 131_072


class NoCache:
    """Keeps nothing."""

    async def get(self, _key: str) -> FloorTable | None:
        """Return nothing."""
        return None

    async def put(self, _key: str, _table: FloorTable) -> None:
        """Keep nothing."""


def main() -> int:
    """Print the table and return 1 if a bound does not hold."""
    endpoint = {"name": "a", "base_url": "http://127.0.0.1:9/v1", "model": MODEL, "dialect": "vllm"}
    settings = settings_from(
        {"probe": {"buckets": BUCKETS}, "endpoints": [endpoint | {"context_length": 131_072}]},
        source="benchmark",
    )
    with Engine() as engine:
        reference = Long(engine, engine.load(MODEL))
        tonight = prompts_tonight(reference, BUCKETS, seed=0, turn=0, turns=settings.probe.turns)
        truth = Truth(reference, tonight, floor_dtype="bf16", k=20, seed=0)
        parts = parts_for(settings, reference, NoCache(), alarm=1000.0, at=datetime(2026, 1, 1, tzinfo=UTC))
        spec = settings.endpoints[0].to_spec()
        spent: Counter[str] = Counter()
        requests: Counter[str] = Counter()
        for prompt in truth.prompts:
            spent[f"curve, {prompt.bucket:,}"] += len(truth.expected[prompt.id])
            requests[f"curve, {prompt.bucket:,}"] += 1
        for part in parts:
            planned = part.planned(spec)
            spent[part.name] += sum(tokens for _, tokens in planned)
            requests[part.name] += len(planned)
        whole = sum(tokens for _, tokens in Questions(truth, ExaminePlan(), parts).of(spec))
    for name, tokens in spent.items():
        print(f"{name:16}{requests[name]:>8,} requests{tokens:>10,} input tokens")
    curve = sum(tokens for name, tokens in spent.items() if name.startswith("curve"))
    print(f"curve {curve:,}, parts {whole - curve:,} of {PARTS:,}, in all {whole:,} of {ALL:,}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"tokens": spent, "requests": requests, "all": whole}, indent=1))
    return int(whole > ALL or whole - curve > PARTS)


if __name__ == "__main__":
    sys.exit(main())
