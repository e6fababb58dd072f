"""The demo's night: one engine, one port a replica, and the ordinary cycle over them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from collector.cycle import Models, over_http, run_cycle
from collector.planted import PLANTED, Planted
from probes.clock import system_clock
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.models.embedded import EMBEDDED_NAME
from reference_engine.server.app import create_app
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.config import Settings, settings_from
from ringtrue.progress import ProgressReport, progress_on
from ringtrue.records import Role, Verdict
from ringtrue.store import open_store

REGISTERED = f"{EMBEDDED_NAME}@int4"  # a precision that a replica may be served in
BUCKETS = ((32, 64), (128, 16), (512, 16), (2048, 4))


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The verdicts, how long it all took (seconds), and the tokens of an endpoint's prompts."""

    verdicts: tuple[Verdict, ...]
    seconds: float
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class DemoNight:
    """One night over the planted replicas; ``seed`` chooses the prompts."""

    seed: int = 0

    def run(self, console: Console) -> DemoResult:
        """Load the model, serve the replicas, examine them; nothing is left behind.

        Raises:
            ModelError: the embedded model is not installed.
        """
        clock = system_clock()
        started = clock.monotonic()
        with Engine() as engine, progress_on(console) as progress:
            progress.say(f"Loading {EMBEDDED_NAME}")
            verdicts, tokens = asyncio.run(self._night(engine, progress))
        return DemoResult(verdicts, clock.monotonic() - started, tokens)

    async def _night(self, engine: Engine, progress: ProgressReport) -> tuple[tuple[Verdict, ...], int]:
        reference, coarse = [
            LocalReference(engine, await asyncio.to_thread(engine.load, name))
            for name in (EMBEDDED_NAME, REGISTERED)
        ]
        clock = system_clock()
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ringtrue-demo-")))
            addresses = {}
            for planted in PLANTED:
                app = await asyncio.to_thread(create_app, engine, _replica(planted))
                addresses[planted.name] = await stack.enter_async_context(serve_app(app))
            settings = self._settings(addresses, folder)
            store = await asyncio.to_thread(open_store, settings.store.url, clock=clock.now)
            stack.callback(store.close)
            result = await run_cycle(
                settings,
                store=store,
                models=Models(reference, (coarse,)),
                connect=over_http(os.environ, clock),
                clock=clock,
                progress=progress,
            )
        return result.verdicts, sum(length * count for length, count in BUCKETS)

    def _settings(self, addresses: dict[str, str], folder: Path) -> Settings:
        endpoints = [
            {
                "name": name,
                "base_url": f"{address}/v1",
                "model": EMBEDDED_NAME,
                "dialect": "vllm",
                "role": Role.REPLICA,
                # All replicas share two cores: many requests under way make full batches, and each
                # of them waits for the batches of all others.
                "limits": {"max_in_flight": 16, "first_byte_timeout": 600.0},
            }
            for name, address in addresses.items()
        ]
        return settings_from(
            {
                "store": {"url": f"sqlite:///{folder / 'demo.db'}"},
                "reference": {"model": EMBEDDED_NAME, "others": [REGISTERED], "floor_dtype": "bf16"},
                "probe": {"buckets": BUCKETS, "seed": self.seed},
                # The planted faults show in the context curve; everything else would double the time.
                "parts": dict.fromkeys(
                    ("sampled", "sessions", "prefix_cache", "greedy", "border", "answers", "toolcalls"), 0
                ),
                "endpoints": endpoints,
            },
            source="demo",
        )


def _replica(planted: Planted) -> Replica:
    return Replica(
        served_name=EMBEDDED_NAME, model=f"{EMBEDDED_NAME}@{planted.variant}", faults=planted.faults
    )
