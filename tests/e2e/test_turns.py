"""Nights with one long prompt each over real HTTP: another one every night, and a statement after four."""

from __future__ import annotations

import asyncio
import dataclasses
import io
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from collector.cycle import Models, over_http, run_cycle
from probes.clock import Clock, system_clock
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.config import settings_from
from ringtrue.progress import progress_on
from ringtrue.records import Cause, Check, State, Verdict
from ringtrue.store import Store, open_store
from tests.no_parts import NO_PARTS

MODEL = "smollm2-135m"
CORRUPT = Replica(MODEL, f"{MODEL}@bf16", Faults(corrupt_beyond=300))
FIRST = datetime(2026, 3, 1, 2, tzinfo=UTC)
LONG = 512


async def four_nights(engine: Engine, reference: LocalReference, database: Path) -> list[Verdict]:
    said = []
    async with AsyncExitStack() as stack:
        app = await asyncio.to_thread(create_app, engine, CORRUPT)
        address = await stack.enter_async_context(serve_app(app))
        for night in range(4):
            at = FIRST + timedelta(days=night)
            clock = dataclasses.replace(system_clock(), now=lambda at=at: at)
            with closing(open_store(f"sqlite:///{database}", clock=clock.now)) as store:
                said.append(await one_night(reference, store, clock, address))
    return said


async def one_night(reference: LocalReference, store: Store, clock: Clock, address: str) -> Verdict:
    endpoint = {"name": "acme", "base_url": f"{address}/v1", "model": MODEL, "dialect": "vllm"}
    sections = {"probe": {"buckets": [[32, 64], [LONG, 1]]}, "parts": NO_PARTS, "endpoints": [endpoint]}
    with progress_on(Console(file=io.StringIO())) as progress:
        result = await run_cycle(
            settings_from(sections, source="test"),
            store=store,
            models=Models(reference),
            connect=over_http({}, clock),
            clock=clock,
            progress=progress,
        )
    return next(verdict for verdict in result.verdicts if verdict.check is Check.CONTEXT)


def test_corruption_beyond_a_length_is_found_by_four_nights_of_one_long_prompt(
    engine: Engine, reference: LocalReference, tmp_path: Path
) -> None:
    said = asyncio.run(four_nights(engine, reference, tmp_path / "ringtrue.db"))

    assert [verdict.verdict for verdict in said[:3]] == [State.UNKNOWN] * 3
    assert said[3].verdict in {State.CHANGED, State.WORSE}
    assert (said[3].cause, said[3].onset) == (Cause.CONTEXT, LONG)
    assert "over the last 4 nights" in said[3].reason
