"""One night over replicas with planted faults, by the ordinary cycle over HTTP on loopback."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faults.planted import BASE, HONEST, OTHER, Fault
from numpy.typing import NDArray
from rich.console import Console
from sqlalchemy import create_engine, select

from collector.cycle import Models, over_http, run_cycle
from logprob_drift.night import pooled
from probes.clock import system_clock
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.serving import serve_app
from ringtrue.config import Settings, settings_from
from ringtrue.progress import Lines
from ringtrue.records import DRIFT, Exchange, State, Verdict
from ringtrue.store import open_store
from ringtrue.tables import OBSERVATION

BUCKETS = ((32, 64), (128, 16), (512, 16), (2048, 4))
HONEST_REPLICAS = 3
ASKED = (64, 128, 256, 512)  # prompts of the shortest bucket
RESAMPLES = 50

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Told:
    """What one night said of one replica.

    ``tokens`` are the input tokens that were sent. ``ratio`` is mean D / mean F
    over the context curve. ``power`` is the share of nights that would have
    been CHANGED or WORSE by the rule of one night with so many of the
    shortest prompts, drawn with replacement from those of this night.
    """

    fault: Fault
    verdicts: tuple[Verdict, ...]
    tokens: int
    ratio: float | None
    power: Mapping[int, float]

    @property
    def drifted(self) -> dict[str, str]:
        """The checks that found something, with the cause they name."""
        return {v.check.value: str(v.cause) for v in self.verdicts if v.verdict in DRIFT}

    @property
    def right(self) -> bool | None:
        """Whether the night said what was planted; ``None`` where nothing has to be seen."""
        if self.fault.check is None:
            return None if self.fault is not HONEST else not self.drifted
        return self.drifted.get(self.fault.check.value) == str(self.fault.cause)


async def one_night(engine: Engine, faults: Sequence[Fault], *, seed: int = 0) -> list[Told]:
    """Examine a replica of each fault, and `HONEST_REPLICAS` honest ones, side by side."""
    replicas = [(f"honest-{i}", HONEST) for i in range(HONEST_REPLICAS)]
    replicas += [(fault.name, fault) for fault in faults]
    reference = LocalReference(engine, await asyncio.to_thread(engine.load, BASE))
    other = LocalReference(engine, await asyncio.to_thread(engine.load, OTHER))
    clock = system_clock()
    sent: Counter[str] = Counter()

    def count(exchange: Exchange) -> None:
        used = exchange.usage.prompt_tokens if exchange.usage is not None else None
        sent[exchange.endpoint] += used or 0

    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        addresses = {}
        for index, (name, fault) in enumerate(replicas):
            app = await asyncio.to_thread(create_app, engine, fault.replica(seed + index))
            addresses[name] = await stack.enter_async_context(serve_app(app))
        settings = _settings(addresses, folder, seed)
        store = await asyncio.to_thread(open_store, settings.store.url, clock=clock.now)
        stack.callback(store.close)
        result = await run_cycle(
            settings,
            store=store,
            models=Models(reference, (other,)),
            connect=over_http({}, clock),
            clock=clock,
            progress=Lines(Console(stderr=True)),
            recorder=count,
        )
        pairs = await asyncio.to_thread(_pairs, folder / "night.db")
    return [
        _told(
            fault,
            [v for v in result.verdicts if v.endpoint == name],
            pairs.get(name),
            sent[name],
            seed,
        )
        for name, fault in replicas
    ]


def _settings(addresses: Mapping[str, str], folder: Path, seed: int) -> Settings:
    return settings_from(
        {
            "store": {"url": f"sqlite:///{folder / 'night.db'}"},
            "reference": {"model": BASE, "others": [OTHER]},
            "probe": {"buckets": BUCKETS, "seed": seed},
            "parts": {"prefix_cache": 0, "answers": 0, "toolcalls": 0},
            "endpoints": [
                {
                    "name": name,
                    "base_url": f"{address}/v1",
                    "model": BASE,
                    "dialect": "vllm",
                    "limits": {"max_in_flight": 16, "first_byte_timeout": 900.0, "total_timeout": 1800.0},
                }
                for name, address in addresses.items()
            ],
        },
        source="benchmark",
    )


@dataclass(frozen=True, slots=True)
class Pairs:
    """D and F of each prompt (nats) and its bucket (tokens), [prompts]."""

    lengths: Values
    d: Values
    f: Values


def _pairs(path: Path) -> dict[str, Pairs]:
    """Return what was measured of each prompt, by endpoint."""
    engine = create_engine(f"sqlite:///{path}")
    by_prompt: dict[str, dict[tuple[object, ...], dict[str, float]]] = {}
    with engine.connect() as connection:
        chosen = select(OBSERVATION).where(OBSERVATION.c.metric.in_(["kl", "kl_floor"]))
        for row in connection.execute(chosen).mappings():
            prompt = (row["context_length"], row["session"], row["at"])
            by_prompt.setdefault(row["endpoint"], {}).setdefault(prompt, {})[row["metric"]] = row["value"]
    engine.dispose()
    return {endpoint: _of_prompts(prompts) for endpoint, prompts in by_prompt.items()}


def _of_prompts(prompts: Mapping[tuple[object, ...], Mapping[str, float]]) -> Pairs:
    both = [(key[0], m["kl"], m["kl_floor"]) for key, m in prompts.items() if len(m) == 2]
    columns = np.array(both, dtype=np.float64).reshape(-1, 3).T
    return Pairs(columns[0], columns[1], columns[2])


def _told(fault: Fault, verdicts: Sequence[Verdict], pairs: Pairs | None, tokens: int, seed: int) -> Told:
    if pairs is None or not pairs.d.size:
        return Told(fault, tuple(verdicts), tokens, None, {})
    short = pairs.lengths == BUCKETS[0][0]
    power = _power(pairs.d[short], pairs.f[short], np.random.default_rng(seed))
    return Told(fault, tuple(verdicts), tokens, float(pairs.d.mean() / pairs.f.mean()), power)


def _power(d: Values, f: Values, rng: np.random.Generator) -> dict[int, float]:
    found = {}
    for asked in ASKED:
        states = []
        for _ in range(RESAMPLES):
            chosen = rng.integers(d.size, size=asked)
            states.append(pooled(d[chosen], f[chosen], rng).state)
        found[asked] = float(np.mean([state in {State.CHANGED, State.WORSE} for state in states]))
    return found
