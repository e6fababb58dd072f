"""One night against one real engine, by the same cycle that ``ringtrue nightly`` runs."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from collector.cycle import Models, run_cycle
from probes.budget import Budget
from probes.clock import system_clock
from probes.http_endpoint import HttpEndpoint, connect
from ringtrue.config import settings_from
from ringtrue.endpoint import Reference
from ringtrue.progress import progress_on
from ringtrue.records import Check, EndpointSpec, Observation, Verdict
from ringtrue.store import open_store
from tests.engines.servers import MODEL, Server
from tests.no_parts import NO_PARTS

_PATIENT = {"first_byte_timeout": 600.0}  # seconds: two cores are shared with the reference


@dataclass(frozen=True, slots=True)
class Plan:
    """How one engine is asked: ``buckets`` are pairs of length (tokens) and number of prompts.

    ``chats`` are asked for their token IDs, or for their counts.
    """

    dialect: str
    buckets: Sequence[tuple[int, int]]
    context_length: int | None = None
    chats: int = 8


@dataclass(frozen=True, slots=True)
class Night:
    """What one cycle concluded and measured."""

    verdicts: dict[Check, Verdict]
    observations: tuple[Observation, ...]

    def curve(self, metric: str) -> dict[int, Observation]:
        """One metric of the context curve by bucket, in tokens."""
        return {
            one.context_length: one
            for one in self.observations
            if one.metric == metric and one.context_length is not None
        }


SpendNight = Callable[[Server, Path, Plan], Night]


def spend_night(server: Server, reference: Reference, folder: Path, plan: Plan) -> Night:
    """Examine ``server`` once, with a new store in ``folder``, and return what the store then holds."""
    endpoint = {
        "name": server.name,
        "base_url": f"{server.url}/v1",
        "model": MODEL,
        "dialect": plan.dialect,
        "context_length": plan.context_length,
        "limits": _PATIENT,
    }
    settings = settings_from(
        {
            "probe": {"buckets": plan.buckets},
            "parts": {**NO_PARTS, "prompts": plan.chats},
            "endpoints": [endpoint],
        },
        source="tests/engines",
    )
    clock = system_clock()
    progress = progress_on(Console(file=io.StringIO()))

    def reach(spec: EndpointSpec, budget: Budget) -> HttpEndpoint:
        return connect(spec, {}, clock=clock, budget=budget)

    with closing(open_store(f"sqlite:///{folder}/ringtrue.db", clock=clock.now)) as store, progress:
        cycle = run_cycle(
            settings, store=store, models=Models(reference), connect=reach, clock=clock, progress=progress
        )
        result = asyncio.run(cycle)
        observations = store.observations(result.run)
    return Night({verdict.check: verdict for verdict in result.verdicts}, observations)
