"""What a cycle keeps, and says, when it can not go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from ringtrue.errors import BudgetError, SecretError, StoreError
from ringtrue.records import EndpointSpec, Finding
from ringtrue.store import RunStatus
from tests.unit.collector.bench import (
    NOON,
    Bench,
    Connected,
    lease_is_free,
    never_ends,
    settings,
)


async def test_an_interrupted_cycle_keeps_what_it_has_and_says_so(bench: Bench) -> None:
    emitted = asyncio.Event()

    async def stays(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await emit()
        emitted.set()
        return await never_ends(emit, name)

    bench.scripts["b"] = stays
    cycle = asyncio.create_task(bench.cycle())
    await emitted.wait()
    await asyncio.to_thread(bench.store.concluded.wait)
    cycle.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await cycle
    run = bench.store.runs()[0]
    assert bench.kept() == (RunStatus.INTERRUPTED, ["a", "b"], ["a"])
    assert run.ended == NOON
    assert str(caught.value) == f"run {run.id} keeps 2 observations and the verdicts of 1 of 2 endpoints"
    assert lease_is_free(bench.store)
    assert all(endpoint.closed for endpoint in bench.connected)


async def test_a_fault_in_one_examination_comes_out_as_itself_and_the_other_verdicts_stay(
    bench: Bench,
) -> None:
    async def breaks(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await asyncio.to_thread(bench.store.concluded.wait)
        raise ZeroDivisionError

    bench.scripts["b"] = breaks
    with pytest.raises(ZeroDivisionError):
        await bench.cycle()
    assert bench.kept() == (RunStatus.FAILED, ["a"], ["a"])
    assert bench.store.runs()[0].reason == "ZeroDivisionError"
    assert lease_is_free(bench.store)


async def test_a_store_that_fills_up_ends_the_cycle_and_keeps_what_it_acknowledged(bench: Bench) -> None:
    acknowledged = 0

    async def fills(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        nonlocal acknowledged
        with bench.store._database.write() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        while True:
            await emit()
            acknowledged += 1

    bench.settings = settings(endpoints=[{"name": "a", "base_url": "http://a/v1", "model": "m"}])
    bench.scripts["a"] = fills
    with pytest.raises(StoreError, match="the disk is full"):
        await bench.cycle()
    assert acknowledged > 0
    (run,) = bench.store.runs()
    assert bench.store.count_observations(run.id) == acknowledged


async def test_a_cycle_beyond_its_budget_is_refused_before_it_connects(bench: Bench) -> None:
    with pytest.raises(BudgetError, match=r"8 requests and .* beyond max_requests = 7; nothing was sent"):
        await bench.cycle(settings=settings(budget={"max_requests": 7}))
    assert bench.connected == []
    assert bench.store.runs() == ()


async def test_a_missing_key_ends_the_cycle_before_anything_is_sent(bench: Bench) -> None:
    def connect(spec: EndpointSpec, budget: object) -> Connected:
        if spec.name == "b":
            raise SecretError("the environment variable B_KEY is not set")
        return bench.connect(spec, budget)

    with pytest.raises(SecretError, match="B_KEY"):
        await bench.cycle(connect=connect)
    assert bench.started == []
    assert bench.store.runs() == ()
    assert [endpoint.closed for endpoint in bench.connected] == [True]
