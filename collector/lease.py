"""The right to run a cycle on a store: one at a time, given back at the end, lost by the dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Never

from ringtrue.errors import LeaseHeldError
from ringtrue.store import Store

NAME = "cycle"
TTL = timedelta(minutes=2)
RENEW_EVERY_S = 30.0
ASK_AGAIN_EVERY_S = 5.0

Sleep = Callable[[float], Awaitable[None]]
"""Waits for so many seconds."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that is ours until it is released, as long as it is renewed."""

    store: Store
    holder: str
    sleep: Sleep

    async def keep(self) -> Never:
        """Renew until cancelled.

        Raises:
            LeaseHeldError: This machine stood still for so long that another took over.
        """
        while True:
            await self.sleep(RENEW_EVERY_S)
            await asyncio.to_thread(self.store.renew_lease, NAME, self.holder, TTL)


@asynccontextmanager
async def cycle_lease(
    store: Store, holder: str, *, sleep: Sleep, wait: bool, say: Callable[[str], None]
) -> AsyncIterator[Lease]:
    """Hold the lease while the block runs; with ``wait``, wait for it and say so once.

    Raises:
        LeaseHeldError: Another cycle runs and ``wait`` is false; names who, since and until when.
    """
    told = False
    while True:
        try:
            await asyncio.to_thread(store.acquire_lease, NAME, holder, TTL)
            break
        except LeaseHeldError as error:
            if not wait:
                raise
            if not told:
                say(f"Waiting: {error.message}")
                told = True
        await sleep(ASK_AGAIN_EVERY_S)
    try:
        yield Lease(store, holder, sleep)
    finally:
        await asyncio.to_thread(store.release_lease, NAME, holder)
