"""Several streams at once, read as one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from itertools import islice
from typing import TypeVar

ItemT = TypeVar("ItemT")


async def in_order(
    streams: Iterable[AsyncGenerator[ItemT, None]], in_flight: int
) -> AsyncGenerator[ItemT, None]:
    """Yield the items of all streams, one stream after the other, while up to ``in_flight`` of them run.

    A single one is handed on item by item. Of several, each is held whole
    until its turn comes. ``streams`` is consumed as places become free. When
    one fails, the others are cancelled.
    """
    if in_flight == 1:
        for stream in streams:
            async with aclosing(stream):
                async for item in stream:
                    yield item
        return
    waiting = iter(streams)
    running = deque(_started(islice(waiting, in_flight)))
    try:
        while running:
            items = await running[0]
            running.popleft()
            running.extend(_started(islice(waiting, 1)))
            for item in items:
                yield item
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _started(streams: Iterable[AsyncGenerator[ItemT, None]]) -> list[asyncio.Task[list[ItemT]]]:
    return [asyncio.create_task(_collected(stream)) for stream in streams]


async def _collected(stream: AsyncGenerator[ItemT, None]) -> list[ItemT]:
    async with aclosing(stream):
        return [item async for item in stream]
