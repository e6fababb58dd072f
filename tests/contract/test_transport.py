"""The transport's own promises: connections a session, and how many idle ones are kept."""

from __future__ import annotations

import httpx
import pytest

from probes import transport
from probes.transport import SESSION, AiohttpTransport
from tests.contract.fault_server import Script, json_script, serve


async def ask(client: httpx.AsyncClient, url: str, session: str | None) -> None:
    response = await client.get(url, extensions={SESSION: session})
    assert response.json() == {"data": []}


async def test_only_the_idle_connections_of_the_latest_sessions_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "_MOST_SESSIONS", 2)
    async with (
        serve(json_script({"data": []})) as server,
        httpx.AsyncClient(transport=AiohttpTransport(None)) as client,
    ):
        for session in ("a", "b", "c", "b", "a"):
            await ask(client, server.url, session)
    assert [seen.connection for seen in server.seen] == [0, 1, 2, 1, 3]


async def test_a_connection_whose_body_was_left_unread_is_not_used_again() -> None:
    long = Script((b"x" * 100_000, b"y" * 100_000), chunked=True)
    async with (
        serve(long, json_script({"data": []})) as server,
        httpx.AsyncClient(transport=AiohttpTransport(None)) as client,
    ):
        async with client.stream("GET", server.url) as response:
            await anext(response.aiter_raw())
        await ask(client, server.url, None)
    assert [seen.connection for seen in server.seen] == [0, 1]
