"""Published methods on the same faults of the same engine, beside an honest replica: power by tokens spent.

LT and MET compare a batch with an honest one and permute requests; B3IT has a
daily rule; token margins compare greedy tokens with an honest replica's. Each
is run as its paper has it (``benchmarks/rivals/``), MET with answers of
`MET_LENGTH` tokens instead of 50.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from faults.planted import HONEST, Fault
from faults.rows import Served, Tokens, Values
from numpy.typing import NDArray
from rivals import lt, met, token_margins

from logprob_drift.token_only.greedy_margins import compare_with_replay
from probes.context_curve import build_prompts
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from ringtrue.records import DRIFT

NOMINAL = 0.01
K = 20
REPEATS = 10
LT_REQUESTS = (10, 20)
MET_LENGTH = 20
GREEDY = (96, 8)  # prompts, tokens
GREEDY_PROMPTS = (32, 64, 96)


@dataclass(frozen=True, slots=True)
class Power:
    """How often a method fires on a fault, [0, 1], by the tokens that one test takes, in and out."""

    method: str
    fault: str
    tokens: int
    power: float
    runs: int


class Rivals:
    """Runs the methods; what the honest replica gave is kept."""

    def __init__(self, engine: Engine, reference: LocalReference, *, seed: int = 0) -> None:
        self._engine = engine
        self._reference = reference
        self._seed = seed
        self._x = reference.render([{"role": "user", "content": "x"}])
        short = build_prompts(reference, ((16, GREEDY[0]),), seed=21)
        self._greedy = [reference.render(prompt.messages) for prompt in short]
        self._honest = Served.load(engine, HONEST)
        self._kept: dict[str, Any] = {}  # what the honest replica gave, which all faults are held against

    def logprobs(self, fault: Fault, numbers: Sequence[int] = LT_REQUESTS) -> list[Power]:
        """LT: one prompt, one token, its top 20; 10 requests a test and more."""
        served = Served.load(self._engine, fault)
        most = max(numbers)
        fired = dict.fromkeys(numbers, 0)
        for run in range(REPEATS):
            rng = np.random.default_rng([self._seed, 1, run])
            before = self._keep(f"rows {run} {most}", lambda rng=rng: self._rows(self._honest, most, rng))
            after = self._rows(served, most, np.random.default_rng([self._seed, 4, run]))
            for requests in numbers:
                one, other = _table(before[:requests], after[:requests])
                fired[requests] += lt.p_value(one, other, rng, 199) <= NOMINAL
        return [
            Power("LT test", fault.name, 2 * requests * (len(self._x) + 1), count / REPEATS, REPEATS)
            for requests, count in fired.items()
        ]

    def _rows(self, served: Served, requests: int, rng: np.random.Generator) -> list[Values]:
        """Return rows of one prompt among requests of others, that is in batches that differ."""
        companions = [self._greedy[i] for i in rng.integers(len(self._greedy), size=requests)]
        rows = served.rows(self._engine, [*[self._x] * requests, *companions], rng)
        return rows[:requests]

    def samples(self, fault: Fault) -> list[Power]:
        """MET: 25 prompts, 10 samples each at temperature 1."""
        served = Served.load(self._engine, fault)
        rng = np.random.default_rng([self._seed, 2])
        asked = np.repeat(np.arange(met.PROMPTS), met.SAMPLES)
        prompts = [self._greedy[i] for i in asked]

        def drawn(who: Served) -> NDArray[np.int32]:
            tokens = who.tokens(self._engine, prompts, MET_LENGTH, rng, temperature=1.0)
            return tokens.astype(np.int32)

        one, other = self._keep("samples", lambda: drawn(self._honest)), drawn(served)
        p = met.p_value(one, other, (asked, asked), rng, 999)
        tokens = 2 * (sum(len(self._greedy[i]) for i in asked) + asked.size * MET_LENGTH)
        return [Power("MET", fault.name, tokens, float(p <= NOMINAL), 1)]

    def margins(self, fault: Fault) -> list[Power]:
        """Greedy tokens, teacher-forced in the reference: token margins as published, and ours by prompt."""
        served = Served.load(self._engine, fault)
        rng = np.random.default_rng([self._seed, 3])
        honest = self._keep("margins", lambda: self._margins(self._honest, rng))
        seen = self._margins(served, rng)
        found = []
        for prompts in GREEDY_PROMPTS:
            cost = sum(len(ids) for ids in self._greedy[:prompts]) + prompts * GREEDY[1]
            p = token_margins.p_value(honest[:prompts].ravel(), seen[:prompts].ravel())
            found.append(Power("token margins", fault.name, 2 * cost, float(p <= NOMINAL), 1))
            ours = compare_with_replay(seen[:prompts].mean(axis=1), honest[:prompts].mean(axis=1), rng)
            found.append(Power("ringtrue margins", fault.name, cost, float(ours.state in DRIFT), 1))
        return found

    def _keep(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self._kept:
            self._kept[name] = compute()
        return self._kept[name]

    def _margins(self, served: Served, rng: np.random.Generator) -> Values:
        """Return the margins of greedy tokens (nats), [prompts, tokens]."""
        tokens = served.tokens(self._engine, self._greedy, GREEDY[1], rng, temperature=0.0)
        return asyncio.run(self._forced(tokens))

    async def _forced(self, tokens: Tokens) -> Values:
        answers = tokens.tolist()
        forced = await asyncio.gather(
            *(self._reference.forced(p, a, k=1) for p, a in zip(self._greedy, answers, strict=True))
        )
        return np.stack([token_margins.margins(one.top[:, 0], one.chosen) for one in forced])


def _table(before: Sequence[Values], after: Sequence[Values]) -> tuple[Values, Values]:
    """Return both batches as [requests, tokens] over the tokens that any row lists, NaN where it does not."""
    rows = [*before, *after]
    listed = [np.argsort(-row, kind="stable")[:K] for row in rows]
    tokens = np.unique(np.concatenate(listed))
    table = np.full((len(rows), tokens.size), np.nan)
    for at, (row, best) in enumerate(zip(rows, listed, strict=True)):
        table[at, np.searchsorted(tokens, best)] = row[best]
    return table[: len(before)], table[len(before) :]
