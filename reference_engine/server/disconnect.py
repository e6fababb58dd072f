"""Work that stops when nobody waits for its answer."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from starlette.requests import Request

from reference_engine.server.api_errors import ApiError

Result = TypeVar("Result")

_CLIENT_CLOSED_REQUEST = 499  # as nginx logs it; no client is left to read it


async def unless_disconnected(request: Request, work: asyncio.Future[Result]) -> Result:
    """Return the result of ``work``, which is cancelled when the client goes away.

    Raises:
        ApiError: the client went away.
    """
    gone = asyncio.ensure_future(_disconnected(request))
    racing: set[asyncio.Future[Any]] = {work, gone}
    try:
        await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ApiError(_CLIENT_CLOSED_REQUEST, "the client went away")
        return work.result()
    finally:
        gone.cancel()
        work.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
