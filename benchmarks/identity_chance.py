"""How often is a registered model that gains nothing said to gain, or to explain the answers?

Nominal 1 % for all registered models together. Every model leaves on average
exactly what the reference leaves, so that each gain is zero and half of all
chances are against the judge: an honest endpoint, for which another model
loses, can only fire less often. What a prompt leaves is drawn from lognormals
of mean 1; in the third and fourth row one side is constant, so that gains are
skewed. Models share the prompts' answers, and so the reference's column.

    python benchmarks/identity_chance.py [RUNS]      # about a minute on one core
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from logprob_drift.identity import ERROR, Fit, judge
from ringtrue.stats import Values

RESULTS = Path(__file__).parent / "results" / "identity_chance.json"
FEW, MANY = 16, 64  # prompts
SETTINGS = ((FEW, 1), (FEW, 5), (MANY, 1), (MANY, 5))  # prompts, registered models

Draw = Callable[[int, np.random.Generator], Values]


def lognormal(sd: float) -> Draw:
    """Return what draws [prompts] of mean 1 whose logarithms have this SD."""
    return lambda count, rng: rng.lognormal(-sd * sd / 2, sd, count)


def constant(count: int, _rng: np.random.Generator) -> Values:
    """Return [prompts] of 1."""
    return np.ones(count)


SHAPES: dict[str, tuple[Draw, Draw]] = {
    "both lognormal, SD 1": (lognormal(1.0), lognormal(1.0)),
    "both lognormal, SD 0.5": (lognormal(0.5), lognormal(0.5)),
    "reference lognormal, SD 1, model constant": (lognormal(1.0), constant),
    "reference constant, model lognormal, SD 1": (constant, lognormal(1.0)),
}


def fire(shape: str, prompts: int, models: int, runs: int) -> dict[str, object]:
    """Return the shares of runs in which any model gains, and in which any explains."""
    reference, model = SHAPES[shape]
    rng = np.random.default_rng([prompts, models, list(SHAPES).index(shape)])
    gains = explains = 0
    for _ in range(runs):
        registered = {f"m{i}": model(prompts, rng) for i in range(models)}
        fits = {one.fit for one in judge(reference(prompts, rng), registered, rng).candidates}
        gains += bool(fits & {Fit.EXPLAINS, Fit.CLOSER})
        explains += Fit.EXPLAINS in fits
    return {
        "shape": shape,
        "prompts": prompts,
        "models": models,
        "runs": runs,
        "gains": gains / runs,
        "explains": explains / runs,
    }


def main() -> int:
    """Print the table and return 1 if a model explains 64 answers more often than nominally."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    rows = []
    for shape in SHAPES:
        for prompts, models in SETTINGS:
            # 64 prompts cost several times as much as 16.
            rows.append(fire(shape, prompts, models, runs if prompts == FEW else runs // 2))
            print("  ".join(f"{value!s:>10}" for value in rows[-1].values()), flush=True)
    RESULTS.write_text(json.dumps({"nominal": ERROR, "rows": rows}, indent=1) + "\n")
    few, many = (worst(rows, prompts) for prompts in (FEW, MANY))
    print(f"a model that gains nothing explains in at most {few:.2%} of runs with {FEW} prompts")
    print(f"and in at most {many:.2%} with {MANY} (nominal {ERROR:.0%})")
    return int(many > ERROR)


def worst(rows: list[dict[str, object]], prompts: int) -> float:
    """Return the largest share of runs in which a model explains this many answers."""
    return max(float(str(row["explains"])) for row in rows if row["prompts"] == prompts)


if __name__ == "__main__":
    sys.exit(main())
