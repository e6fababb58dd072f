"""One cycle at a time: the lease."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from collector.lease import NAME, TTL
from ringtrue.errors import LeaseHeldError
from ringtrue.store import RunStatus
from tests.unit.collector.bench import (
    Bench,
    never_ends,
)


async def test_a_second_cycle_says_who_holds_the_lease_and_sends_nothing(bench: Bench) -> None:
    bench.store.acquire_lease(NAME, "host-a pid 7", TTL)
    with pytest.raises(LeaseHeldError, match="host-a pid 7 runs a cycle here since 2026-03-01 12:00:00Z"):
        await bench.cycle()
    assert bench.started == []
    assert bench.store.runs() == ()


async def test_a_cycle_that_may_wait_says_so_once_and_runs_when_the_first_is_done(bench: Bench) -> None:
    bench.store.acquire_lease(NAME, "host-a pid 7", TTL)
    cycle = asyncio.create_task(bench.cycle(wait=True))
    await bench.time.wake_one()
    still_waiting = await bench.time.sleepers.get()
    assert bench.started == []
    bench.store.release_lease(NAME, "host-a pid 7")
    still_waiting.set_result(None)
    await cycle
    assert [line for line in bench.said.lines if line.startswith("Waiting")] == [
        "Waiting: host-a pid 7 runs a cycle here since 2026-03-01 12:00:00Z"
    ]
    assert bench.kept()[0] is RunStatus.OK


async def test_a_running_cycle_renews_its_lease(bench: Bench) -> None:
    bench.scripts["b"] = never_ends
    cycle = asyncio.create_task(bench.cycle())
    renewal = await bench.time.sleepers.get()
    bench.time.now += TTL - timedelta(seconds=1)
    renewal.set_result(None)
    await bench.time.sleepers.get()
    bench.time.now += timedelta(seconds=2)
    with pytest.raises(LeaseHeldError):
        bench.store.acquire_lease(NAME, "other", TTL)
    cycle.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cycle


async def test_a_cycle_that_lost_its_lease_stops(bench: Bench) -> None:
    bench.scripts["b"] = never_ends
    cycle = asyncio.create_task(bench.cycle())
    renewal = await bench.time.sleepers.get()
    bench.time.now += TTL
    bench.store.acquire_lease(NAME, "other", TTL)
    renewal.set_result(None)
    with pytest.raises(LeaseHeldError, match="taken over"):
        await cycle
    assert bench.kept()[0] is RunStatus.FAILED
    with pytest.raises(LeaseHeldError, match="other runs a cycle"):
        bench.store.acquire_lease(NAME, "third", TTL)
