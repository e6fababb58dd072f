"""Asking in sessions with cache keys, at endpoints that may refuse the field that carries them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from evals.parts.asker import Asker
from probes.cache_key import CacheKeys
from ringtrue.records import Exchange, Request


async def ask_keyed(
    asker: Asker, keys: CacheKeys, requests: Sequence[Request]
) -> AsyncGenerator[Exchange, None]:
    """Send ``requests``, their sessions' keys put in by ``keys``, and yield each exchange as it finishes.

    Until one was answered they go one by one, and one that was refused goes
    again with its key put otherwise, at last without: a server that knows no
    such field is asked all the same. A refusal that was mended so is recorded
    and not yielded.
    """
    waiting = list(requests)
    while waiting and not keys.settled and asker.stopped is None:
        async with aclosing(asker.ask([keys.put(waiting[0])])) as exchanges:
            async for exchange in exchanges:
                if not keys.again(exchange):
                    waiting.pop(0)
                    yield exchange
    async with aclosing(asker.ask([keys.put(request) for request in waiting])) as exchanges:
        async for exchange in exchanges:
            yield exchange
