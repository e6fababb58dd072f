"""A cycle with the real examination and real sockets; only the reference model is a small one."""

from __future__ import annotations

import asyncio
import io
import random
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from collector.cycle import CycleResult, Models, run_cycle
from collector.lease import RENEW_EVERY_S
from probes.budget import Budget
from probes.clock import Clock
from probes.http_endpoint import HttpEndpoint, connect
from ringtrue.config import settings_from
from ringtrue.errors import SecretError
from ringtrue.exit_codes import ExitCode, exit_code
from ringtrue.progress import progress_on
from ringtrue.records import Check, EndpointSpec, State
from ringtrue.store import RunStatus, Store, open_store
from tests.no_parts import NO_PARTS
from tests.plain_format import PlainFormat

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Bytes(PlainFormat):
    """A reference whose tokens are bytes; an endpoint that never answers is never compared with it."""

    model = "bytes"
    fingerprint = "f"
    context_length = 4096
    vocabulary_size = 256

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])

    def render(self, messages: Sequence[Mapping[str, str]], tools: object = None) -> tuple[int, ...]:
        return self.encode("".join(message["content"] for message in messages))


async def sleep(seconds: float) -> None:
    """Let retries follow one another at once, and the lease never need renewing."""
    if seconds >= RENEW_EVERY_S:
        await asyncio.Event().wait()


CLOCK = Clock(lambda: 0.0, lambda: NOON, sleep)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Yield a port that nobody listens on: it is bound, so that nobody else gets it."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{tmp_path}/ringtrue.db", clock=lambda: NOON)) as store:
        yield store


async def cycle(store: Store, *endpoints: Mapping[str, object], environ: Mapping[str, str]) -> CycleResult:
    def connect_here(spec: EndpointSpec, budget: Budget) -> HttpEndpoint:
        return connect(spec, environ, clock=CLOCK, rng=random.Random(0), budget=budget)  # noqa: S311 - jitter

    probe = {"buckets": [[32, 4]], "languages": ["english"]}
    with progress_on(Console(file=io.StringIO())) as progress:
        return await run_cycle(
            settings_from({"endpoints": endpoints, "probe": probe, "parts": NO_PARTS}, source="test"),
            store=store,
            models=Models(Bytes()),
            connect=connect_here,
            clock=CLOCK,
            progress=progress,
        )


async def test_an_endpoint_nobody_answers_at_is_unknown_and_its_failures_are_observations(
    store: Store, closed_port: int
) -> None:
    url = f"http://127.0.0.1:{closed_port}/v1"
    result = await cycle(store, {"name": "acme", "base_url": url, "model": "m"}, environ={})
    assert {verdict.check for verdict in result.verdicts} >= {Check.LOGPROBS, Check.TOKENS, Check.WIRE}
    assert {verdict.verdict for verdict in result.verdicts} == {State.UNKNOWN}
    assert all(f"127.0.0.1:{closed_port}" in verdict.reason for verdict in result.verdicts)
    assert exit_code(result.verdicts) is ExitCode.UNMEASURED
    assert store.runs()[0].status is RunStatus.OK
    assert store.current_verdicts() == result.verdicts
    assert store.count_observations(result.run) > 0


async def test_a_missing_key_is_named_before_the_other_endpoints_are_asked(
    store: Store, closed_port: int
) -> None:
    url = f"http://127.0.0.1:{closed_port}/v1"
    keyed = {"name": "keyed", "base_url": url, "model": "m", "api_key": "env:ACME_KEY"}
    with pytest.raises(SecretError, match=r"endpoint keyed: .*ACME_KEY is not set"):
        await cycle(store, {"name": "acme", "base_url": url, "model": "m"}, keyed, environ={})
    assert store.runs() == ()
