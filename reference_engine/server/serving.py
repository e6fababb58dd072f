"""An application on a port, inside this process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

from ringtrue.errors import UsageError

_BACKLOG = 2_048
_PATIENCE = 5  # seconds that open answers get when the server stops


@asynccontextmanager
async def serve_app(app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve ``app`` while open and yield its address, ``http://host:port``.

    Port 0 takes a free one. Connections are accepted from the first moment:
    the socket listens before the server starts.

    Raises:
        UsageError: the address cannot be bound.
    """
    listener = _listen(host, port)
    server = _Embedded(_config(app))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_PATIENCE,
    )


def run_app(app: ASGIApp, host: str, port: int, *, announce: Callable[[str], object]) -> None:
    """Serve ``app`` until the process is told to stop; ``announce`` gets the line that says where.

    Raises:
        UsageError: the address cannot be bound.
    """
    listener = _listen(host, port)
    announce(f"serving on http://{host}:{listener.getsockname()[1]}")
    uvicorn.Server(_config(app)).run(sockets=[listener])


class _Embedded(uvicorn.Server):
    """A server that leaves the signals to the program around it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise UsageError(
            f"the address cannot be used: {error.strerror}",
            where=f"{host}:{port}",
            remedy="Choose another host or port; port 0 takes a free one",
        ) from error
