"""How long does one difference of token IDs take at 32k tokens, with its blame and its rows?

Prompts of 32,768 random IDs of a vocabulary of 50,000 in turns of 512, and
faults from one token to every token; the least CPU time of three. The bound is
1 s on one core for the difference, the blame and the rows together.

    python benchmarks/token_diff.py      # some 20 seconds
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tokenizer_checks.blame import blame
from tokenizer_checks.difference import difference
from tokenizer_checks.side_by_side import rows
from tokenizer_checks.vocabulary import Vocabulary

RESULTS = Path(__file__).parent / "results" / "token_diff.json"
BOUND, ROUNDS, LENGTH, WORDS, TURN = 1.0, 3, 32_768, 50_000, 512
MARKER = WORDS


def prompts() -> dict[str, tuple[list[int], list[int]]]:
    """Return the expected and the used IDs of each case."""
    rng = np.random.default_rng(7)
    text = rng.integers(WORDS, size=LENGTH)
    text[::TURN] = MARKER
    other, chance = rng.integers(WORDS, size=LENGTH), rng.random(LENGTH)
    scattered, tenth = (np.where(chance < share, other, text).tolist() for share in (0.01, 0.1))
    text = text.tolist()
    pairs = zip(text, chance, strict=True)
    finer = [part for i, x in pairs for part in ((i,) if x < 0.7 else (i % 256, i // 256))]
    few, fewer = rng.integers(4, size=(2, LENGTH)).tolist()
    return {
        "one token more at the start": (text, [MARKER, *text]),
        "one token less at the end": (text, text[:-1]),
        "half cut away": (text, text[: LENGTH // 4 + 100] + text[3 * LENGTH // 4 + 200 :]),
        "1 % of tokens replaced": (text, scattered),
        "10 % of tokens replaced": (text, tenth),
        "30 % of tokens split in two": (text, finer),
        "in reverse": (text, text[::-1]),
        "nothing in common": (text, [i + WORDS + 1 for i in text]),
        "four IDs, two random prompts": (few, fewer),
        "one ID against two in turn": ([1] * LENGTH, [1, 2] * (LENGTH // 2)),
    }


def decode(ids: Sequence[int]) -> str:
    """Return a text that costs about what a tokenizer's does."""
    return "".join(f" w{i}" for i in ids)


def judged(expected: list[int], used: list[int]) -> tuple[float, int, str]:
    """Return the CPU seconds of one case, the runs it found and its blame."""
    vocabulary = Vocabulary(decode, frozenset({MARKER}))
    begin = time.process_time()
    found = difference(expected, used, vocabulary)
    assert found is not None
    layer = blame(found, vocabulary).layer
    list(rows(found, vocabulary))
    return time.process_time() - begin, len(found.runs), layer.value


def main() -> int:
    """Print the table, and return 1 where the bound does not hold."""
    cases = {}
    for name, (expected, used) in prompts().items():
        rounds = [judged(expected, used) for _ in range(ROUNDS)]
        seconds, runs, layer = min(rounds)
        cases[name] = {"seconds": seconds, "runs": runs, "blame": layer}
        print(f"{name:32} {seconds:7.3f} s {runs:7,} runs  {layer}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"bound_s": BOUND, "tokens": LENGTH, "cases": cases}, indent=1) + "\n")
    slow = [name for name, case in cases.items() if float(str(case["seconds"])) > BOUND]
    print(f"{len(slow)} of {len(cases)} over {BOUND:.0f} s")
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
