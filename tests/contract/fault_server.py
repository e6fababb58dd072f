"""A server that fails exactly as it is told to: real sockets, no framework in between.

Each request takes the next script; the last one repeats. Nothing in it waits
for a time: a server that hangs does so until it is closed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any


class Act(Enum):
    """What a server can do in the middle of an answer besides sending bytes."""

    HANG = "say nothing more, and keep the connection open"
    RESET = "reset the connection"
    CLOSE = "close the connection without ending the body"


@dataclass(frozen=True)
class Script:
    """One answer. ``raw`` sends the parts as they are, without a status line or framing.

    ``greets`` sends them before any request was read. A body without acts in it
    gets a Content-Length, any other is chunked.
    """

    parts: Sequence[bytes | Act] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    raw: bool = False
    chunked: bool = False
    greets: bool = False


@dataclass(frozen=True)
class Seen:
    """One request as it arrived. ``connection`` numbers the connections from 0."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    connection: int


class FaultServer:
    """The running server: its address, and what it has seen."""

    def __init__(self, scripts: Sequence[Script], scheme: str) -> None:
        self.seen: list[Seen] = []
        self.asked = asyncio.Event()  # a request has come
        self.port = 0
        self._scripts = scripts
        self._scheme = scheme
        self._connections = 0
        self._closing = asyncio.Event()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/v1"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, self._connections = self._connections, self._connections + 1
        try:
            if self._scripts[0].greets:
                await self._play(self._scripts[0], writer)
                return
            while (seen := await _read_request(reader, connection)) is not None:
                script = self._scripts[min(len(self.seen), len(self._scripts) - 1)]
                self.seen.append(seen)
                self.asked.set()
                if not await self._play(script, writer):
                    break
        except ConnectionError:
            pass  # the client hung up, as many of these tests make it do
        finally:
            writer.close()

    async def _play(self, script: Script, writer: asyncio.StreamWriter) -> bool:
        """Play one script; return whether the connection can carry another request."""
        chunked = script.chunked or any(isinstance(part, Act) for part in script.parts)
        if not script.raw:
            writer.write(_head(script, chunked=chunked))
        for part in script.parts:
            await writer.drain()
            if part is Act.HANG:
                await self._closing.wait()
                return False
            if part is Act.RESET:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
                return False
            if part is Act.CLOSE:
                return False
            assert isinstance(part, bytes)
            writer.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked and not script.raw else part)
        if chunked and not script.raw:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return not script.raw

    def close(self) -> None:
        self._closing.set()


@asynccontextmanager
async def serve(*scripts: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[FaultServer]:
    """Run a server on a free port of the loopback."""
    fault_server = FaultServer(scripts, "https" if tls else "http")
    listener = await asyncio.start_server(fault_server.handle, "127.0.0.1", 0, ssl=tls)
    fault_server.port = listener.sockets[0].getsockname()[1]
    try:
        yield fault_server
    finally:
        fault_server.close()
        listener.close()


def refused_port() -> int:
    """A port of the loopback on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def json_script(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Script:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Script((body,), status, {"content-type": "application/json", **(headers or {})})


def error_script(status: int, message: str, *, headers: Mapping[str, str] | None = None) -> Script:
    return json_script({"error": {"message": message, "type": "error"}}, status=status, headers=headers)


def stream_script(*events: Any, then: Sequence[Act] = (), done: bool = True) -> Script:
    """A stream of one chunk an event; dicts become JSON, bytes go as they are."""
    parts = [
        event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
        for event in events
    ]
    end = [b"data: [DONE]\n\n"] if done else []
    return Script((*parts, *end, *then), 200, {"content-type": "text/event-stream"}, chunked=True)


def chat_answer(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    return {"id": "a", "model": "m", "choices": [choice], "usage": usage} | fields


def chat_delta(text: str | None = None, finish_reason: str | None = None) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {
        "id": "a",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method, path, headers, json.loads(body) if body else None, connection)


def _head(script: Script, *, chunked: bool) -> bytes:
    size = sum(len(part) for part in script.parts if isinstance(part, bytes))
    framing = "transfer-encoding: chunked" if chunked else f"content-length: {size}"
    fields = [f"{name}: {value}" for name, value in script.headers.items()]
    phrase = HTTPStatus(script.status).phrase
    return "\r\n".join([f"HTTP/1.1 {script.status} {phrase}", *fields, framing, "", ""]).encode()
