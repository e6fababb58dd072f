from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from probes.clock import Clock
from probes.runner import run
from ringtrue.endpoint import Endpoint, Reply
from ringtrue.records import EndpointSpec, Exchange, Limits, Request, Timings

AT = datetime(2026, 3, 1, tzinfo=UTC)


class Steps:
    """A clock that only sleepers move."""

    def __init__(self) -> None:
        self.reading = 0.0

    def clock(self) -> Clock:
        return Clock(lambda: self.reading, lambda: AT, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.reading += seconds
        await asyncio.sleep(0)


class GatedEndpoint:
    """Answers a request when the test opens it, or at once when nothing is gated."""

    def __init__(self, name: str, limits: Limits, *, gated: bool = False, steps: Steps | None = None) -> None:
        self.spec = EndpointSpec(name, "http://h", "m", limits=limits)
        self.started: list[str] = []
        self.started_at: list[float] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._gates: dict[str, asyncio.Event] = {}
        self._gated = gated
        self._steps = steps or Steps()

    async def send(self, request: Request) -> Exchange:
        self.started.append(request.id)
        self.started_at.append(self._steps.reading)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        if self._gated:
            await self.gate(request.id).wait()
        else:
            await asyncio.sleep(0)
        self._in_flight -= 1
        return Exchange(request.id, self.spec.name, request, AT, Timings(0.0))

    def gate(self, request_id: str) -> asyncio.Event:
        return self._gates.setdefault(request_id, asyncio.Event())

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        raise AssertionError((method, path, body))

    async def aclose(self) -> None:
        raise AssertionError("the runner does not own the endpoints")


def requests(endpoint: Endpoint, *ids: str) -> list[tuple[Endpoint, Request]]:
    return [(endpoint, Request(id=name, prompt="x")) for name in ids]


async def test_every_request_is_sent_in_its_order_and_yielded_once() -> None:
    one, two = GatedEndpoint("one", Limits(max_in_flight=1)), GatedEndpoint("two", Limits(max_in_flight=2))
    items = requests(one, "a", "b", "c") + requests(two, "d", "e", "f")
    progress: list[int] = []
    found = [exchange.id async for exchange in run(items, clock=Steps().clock(), on_progress=progress.append)]
    assert sorted(found) == ["a", "b", "c", "d", "e", "f"]
    assert (one.started, two.started) == (["a", "b", "c"], ["d", "e", "f"])
    assert (one.most_in_flight, two.most_in_flight) == (1, 2)
    assert progress == [1, 2, 3, 4, 5, 6]


async def test_an_exchange_is_yielded_as_it_finishes_and_not_in_order() -> None:
    endpoint = GatedEndpoint("ep", Limits(max_in_flight=2), gated=True)
    async with aclosing(run(requests(endpoint, "slow", "fast"), clock=Steps().clock())) as exchanges:
        endpoint.gate("fast").set()
        assert (await anext(exchanges)).id == "fast"
        endpoint.gate("slow").set()
        assert (await anext(exchanges)).id == "slow"


async def test_starts_are_spaced_by_the_rate_of_the_endpoint() -> None:
    steps = Steps()
    endpoint = GatedEndpoint("ep", Limits(max_in_flight=1, requests_per_second=4.0), steps=steps)
    found = [exchange async for exchange in run(requests(endpoint, "a", "b", "c"), clock=steps.clock())]
    assert len(found) == 3
    assert endpoint.started_at == [0.0, 0.25, 0.5]


async def test_what_finished_is_yielded_before_a_cancellation_goes_on() -> None:
    endpoint = GatedEndpoint("ep", Limits(max_in_flight=2), gated=True)
    found: list[str] = []
    seen: list[str] = []
    waiting = asyncio.Event()

    async def consume() -> None:
        nonlocal found
        items = requests(endpoint, "done", "hanging")
        async with aclosing(
            run(items, clock=Steps().clock(), on_exchange=lambda exchange: seen.append(exchange.id))
        ) as exchanges:
            waiting.set()
            async for exchange in exchanges:
                found += [exchange.id]

    consumer = asyncio.create_task(consume())
    await waiting.wait()
    endpoint.gate("done").set()
    while not seen:  # noqa: ASYNC110  the moment between finishing and yielding is the one under test
        await asyncio.sleep(0)
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert found == seen == ["done"]


async def test_leaving_early_abandons_the_rest_and_leaves_no_task_behind() -> None:
    endpoint = GatedEndpoint("ep", Limits(max_in_flight=1), gated=True)
    endpoint.gate("a").set()
    async with aclosing(run(requests(endpoint, "a", "b", "c"), clock=Steps().clock())) as exchanges:
        assert (await anext(exchanges)).id == "a"
    assert "c" not in endpoint.started
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_of_a_callback_reaches_the_consumer_as_it_is() -> None:
    endpoint = GatedEndpoint("ep", Limits())

    def refuse(exchange: Exchange) -> None:
        raise OSError(f"cannot keep {exchange.id}")

    with pytest.raises(OSError, match="cannot keep a"):
        async for _ in run(requests(endpoint, "a"), clock=Steps().clock(), on_exchange=refuse):
            pass


async def test_nothing_to_send_yields_nothing() -> None:
    assert [exchange async for exchange in run([], clock=Steps().clock())] == []
