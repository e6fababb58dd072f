"""Sending many requests to many endpoints, each no faster than it may be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

from probes.clock import Clock
from ringtrue.endpoint import Endpoint
from ringtrue.records import Exchange, Request


async def run(
    items: Iterable[tuple[Endpoint, Request]],
    *,
    clock: Clock,
    on_exchange: Callable[[Exchange], None] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> AsyncGenerator[Exchange, None]:
    """Send the requests and yield each exchange as it finishes.

    Each endpoint gets its requests in the order given, at most
    ``max_in_flight`` at once and no more than ``requests_per_second``; the
    endpoints go on side by side. ``on_progress`` receives the number finished.

    Nothing that finished is lost: ``on_exchange`` is called at the moment an
    exchange finishes, before anything else can happen; and when the consumer
    is cancelled while it waits here, the exchanges not yet yielded still are,
    before the cancellation goes on. Requests under way are then abandoned.
    """
    finished: asyncio.Queue[Exchange | None] = asyncio.Queue()
    count = 0

    def finish(exchange: Exchange) -> None:
        nonlocal count
        count += 1
        finished.put_nowait(exchange)
        if on_exchange is not None:
            on_exchange(exchange)
        if on_progress is not None:
            on_progress(count)

    sending = asyncio.create_task(_send_all(items, clock, finish))
    sending.add_done_callback(lambda _: finished.put_nowait(None))
    try:
        while (exchange := await finished.get()) is not None:
            yield exchange
        await sending  # raises what a sender or a callback raised
    except asyncio.CancelledError:
        while not finished.empty():
            if (exchange := finished.get_nowait()) is not None:
                yield exchange
        raise
    finally:
        sending.cancel()
        await asyncio.wait([sending])


async def _send_all(
    items: Iterable[tuple[Endpoint, Request]], clock: Clock, finish: Callable[[Exchange], None]
) -> None:
    by_endpoint: dict[Endpoint, list[Request]] = {}
    for endpoint, request in items:
        by_endpoint.setdefault(endpoint, []).append(request)
    try:
        async with asyncio.TaskGroup() as group:
            for endpoint, requests in by_endpoint.items():
                waiting = iter(requests)
                pace = _Pace(endpoint.spec.limits.requests_per_second, clock)
                for _ in range(min(endpoint.spec.limits.max_in_flight, len(requests))):
                    group.create_task(_send_in_turn(endpoint, waiting, pace, finish))
    except BaseExceptionGroup as group_of_errors:
        raise group_of_errors.exceptions[0] from None


async def _send_in_turn(
    endpoint: Endpoint, waiting: Iterator[Request], pace: _Pace, finish: Callable[[Exchange], None]
) -> None:
    """One of an endpoint's senders; all of them draw from the same iterator."""
    for request in waiting:
        await pace.turn()
        finish(await endpoint.send(request))


class _Pace:
    """Spaces the starts of requests evenly."""

    def __init__(self, per_second: float | None, clock: Clock) -> None:
        self._interval = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._next = float("-inf")

    async def turn(self) -> None:
        now = self._clock.monotonic()
        start = max(now, self._next)
        self._next = start + self._interval
        if start > now:
            await self._clock.sleep(start - now)
