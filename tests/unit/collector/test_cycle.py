"""What a cycle does when all goes well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from ringtrue.records import Finding, Severity, State
from ringtrue.store import RunStatus
from tests.unit.collector.bench import (
    NOON,
    Bench,
    finding,
    lease_is_free,
)


async def test_every_endpoint_gets_its_verdicts_and_they_are_stored(bench: Bench) -> None:
    result = await bench.cycle()
    assert [(verdict.endpoint, verdict.verdict) for verdict in result.verdicts] == [
        ("a", State.OK),
        ("b", State.OK),
    ]
    assert bench.kept() == (RunStatus.OK, ["a", "b"], ["a", "b"])
    # Endpoints are examined side by side: which is stored first is nobody's promise.
    assert sorted(finding.endpoint for finding in bench.store.findings(result.run)) == ["a", "b"]
    assert bench.store.current_verdicts() == result.verdicts
    assert lease_is_free(bench.store)
    assert all(endpoint.closed for endpoint in bench.connected)
    assert bench.said.done == {"a": 0, "b": 0}


async def test_what_it_may_cost_is_said_before_anything_is_sent(bench: Bench) -> None:
    await bench.cycle()
    # At each of two endpoints 4 prompts and 20 requests of the self-test, all tried 3 times, and 4 refusals.
    assert bench.said.lines[0].startswith("At most 152 requests, ")
    assert bench.said.lines[1:] == ["examining a", "examining b"]


async def test_endpoints_are_examined_at_the_same_time(bench: Bench) -> None:
    both = asyncio.Barrier(2)

    async def meets(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await both.wait()
        return [finding(name)]

    bench.scripts = {"a": meets, "b": meets}
    async with asyncio.timeout(10):
        assert len((await bench.cycle()).verdicts) == 2


async def test_since_reaches_back_to_the_first_night_of_an_unbroken_series(bench: Bench) -> None:
    await bench.cycle()
    bench.time.now += timedelta(days=1)

    async def drifts(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        return [finding(name, Severity.FAIL)]

    bench.scripts["b"] = drifts
    result = await bench.cycle()
    assert [(verdict.verdict, verdict.since) for verdict in result.verdicts] == [
        (State.OK, NOON),
        (State.WORSE, NOON + timedelta(days=1)),
    ]


async def test_exchanges_go_to_the_recorder_and_nowhere_else(bench: Bench) -> None:
    recorded: list[Any] = []
    await bench.cycle(recorder=recorded.append)
    assert [exchange.endpoint for exchange in recorded] == ["a", "b"]
