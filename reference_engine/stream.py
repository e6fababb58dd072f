"""Steps on their way from the engine thread to an event loop."""

from __future__ import annotations

import asyncio

from reference_engine.generation import Step


class StepStream:
    """An asynchronous iterator of steps, made on the loop that reads it and filled from another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[Step | Exception] = asyncio.Queue()
        self._cancelled = False
        self._finished = False

    @property
    def cancelled(self) -> bool:
        """Whether nobody reads any more."""
        return self._cancelled or self._loop.is_closed()

    def cancel(self) -> None:
        """Say that nobody reads any more."""
        self._cancelled = True

    def put(self, item: Step | Exception) -> None:
        """Hand over the next step, or the error that ends the stream; any thread may call."""
        if not self.cancelled:
            self._loop.call_soon_threadsafe(self._arrived.put_nowait, item)

    def __aiter__(self) -> StepStream:
        return self

    async def __anext__(self) -> Step:
        if self._finished:
            raise StopAsyncIteration
        item = await self._arrived.get()
        if isinstance(item, Exception):
            raise item
        self._finished = item.finish_reason is not None
        return item
