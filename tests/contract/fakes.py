"""A clock that is moved by whoever sleeps on it, and endpoints with tiny limits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from probes.budget import Budget
from probes.clock import Clock
from probes.http_endpoint import HttpEndpoint, connect
from ringtrue.records import EndpointSpec, Limits, Request

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HELLO = Request(id="hello", messages=({"role": "user", "content": "hi"},))
HELLO_STREAMED = Request(id="hello", messages=({"role": "user", "content": "hi"},), stream=True)


@dataclass
class SteppedClock:
    """Stands still until somebody sleeps; ``slept`` lists for how long."""

    reading: float = 100.0
    slept: list[float] = field(default_factory=list)

    def clock(self) -> Clock:
        return Clock(lambda: self.reading, lambda: NOON + timedelta(seconds=self.reading - 100.0), self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.reading += seconds
        await asyncio.sleep(0)


@asynccontextmanager
async def endpoint_at(
    url: str,
    *,
    steps: SteppedClock | None = None,
    env: Mapping[str, str] | None = None,
    budget: Budget | None = None,
    limits: Mapping[str, Any] | None = None,
    **fields: Any,
) -> AsyncIterator[HttpEndpoint]:
    """An endpoint named ``ep`` that asks once, unless ``limits`` say otherwise."""
    spec = EndpointSpec("ep", url, "m", limits=Limits(**{"max_attempts": 1, **(limits or {})}), **fields)
    clock = (steps or SteppedClock()).clock()
    rng = random.Random(0)  # noqa: S311  the jitter of retries
    endpoint = connect(spec, env or {}, clock=clock, rng=rng, budget=budget)
    try:
        yield endpoint
    finally:
        await endpoint.aclose()
