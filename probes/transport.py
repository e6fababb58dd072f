"""httpx's transport seam, with aiohttp behind it.

httpx's own pool walks all its connections for each request that starts or
ends, and its reader costs about three times the CPU of aiohttp's: with some
hundred streams in flight the times it reports are its own queue's, not the
server's (benchmarks/probe_load.py).
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import httpx

SESSION = "ringtrue.session"
"""Key of ``httpx.Request.extensions`` that names the session of a request."""

_KEEPALIVE = 4.0  # seconds; below the 5 s of uvicorn, so that we seldom write into a connection being closed
_MOST_SESSIONS = 256  # named ones whose idle connections are kept

# The first row that fits holds.
_RAISED: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),  # certificates included
    (aiohttp.ServerDisconnectedError, httpx.ReadError),
    (aiohttp.ClientPayloadError, httpx.ReadError),
    (aiohttp.ClientConnectionError, httpx.ReadError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),  # the status line or a header is none
)


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends requests over HTTP/1.1, those of one named session over connections of their own.

    Cookies are ignored, proxies and ``.netrc`` are not read, nothing is
    retried, redirected or decompressed.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._clients: dict[str | None, _Client] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send and return the response as soon as its head is there.

        Raises:
            httpx.TransportError: as httpx's own transport does.
        """
        client = self._client(request.extensions.get(SESSION))
        timeouts = request.extensions["timeout"]
        client.busy += 1
        try:
            await self._close_idle()
            with _raised_as_httpx():
                response = await client.session.request(
                    request.method,
                    str(request.url),
                    headers=request.headers.multi_items(),
                    data=request.content or None,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeouts["connect"]),
                )
        except BaseException:
            client.busy -= 1
            raise
        return httpx.Response(
            response.status, headers=list(response.raw_headers), stream=_Body(response, client)
        )

    def _client(self, name: str | None) -> _Client:
        client = self._clients.pop(name, None) or _Client(self._context)
        self._clients[name] = client  # the latest used is the last
        return client

    async def _close_idle(self) -> None:
        """Keep the idle connections of the latest sessions only."""
        surplus = len(self._clients) - _MOST_SESSIONS
        if surplus <= 0:
            return
        idle = [name for name, client in self._clients.items() if not client.busy]
        for client in [self._clients.pop(name) for name in idle[:surplus]]:
            await client.session.close()

    async def aclose(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.session.close()


class _Client:
    """The connections of one session, and how many requests they carry."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        connector = aiohttp.TCPConnector(
            limit=0,  # the runner limits what is in flight
            keepalive_timeout=_KEEPALIVE,
            ssl=context or True,
        )
        self.session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )
        self.busy = 0


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse, client: _Client) -> None:
        self._response = response
        self._client = client

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _raised_as_httpx():
            async for data in self._response.content.iter_any():
                yield data

    async def aclose(self) -> None:
        self._client.busy -= 1
        self._response.close()  # a connection whose body was read to its end went back already


@contextmanager
def _raised_as_httpx() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientError as error:
        raised = next((ours for theirs, ours in _RAISED if isinstance(error, theirs)), httpx.ReadError)
        raise raised(_reason(error)) from error


def _reason(error: aiohttp.ClientError) -> str:
    """What the system said, without the address that aiohttp puts around it."""
    if isinstance(error, aiohttp.ClientConnectorError):
        number, said = error.os_error.errno, error.os_error.strerror
        return os.strerror(number) if number is not None and number > 0 else said or str(error.os_error)
    said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return next((line.strip() for line in said.splitlines() if line.strip()), type(error).__name__)
