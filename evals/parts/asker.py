"""The asking of one endpoint by one part: everything sent is recorded, counted and kept."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing

import numpy as np

from evals.comparisons import Emit
from evals.curve_numbers import Scribe
from probes.clock import Clock
from probes.dialects import dialect_named
from probes.dialects.dialect import Dialect
from probes.prompt_ids import Shown, show
from probes.runner import run as run_requests
from ringtrue.endpoint import Endpoint
from ringtrue.records import EndpointSpec, Exchange, Failure, FailureKind, Request
from tokenizer_checks.templates.chat import Chat

GIVE_UP_AFTER = 8  # failures in a row
_REFUSALS = frozenset({FailureKind.REFUSED, FailureKind.CAPABILITY_REFUSED})


class Asker:
    """Sends a part's requests to one endpoint and takes its numbers.

    ``exchanges`` grows with every answer, failed ones included; ``stopped`` is
    the failure that ended the asking. Answers may stop early: whoever breaks
    off the iteration leaves the rest unsent.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        scribe: Scribe,
        *,
        seed: int,
        clock: Clock,
        emit: Emit,
        on_progress: Callable[[int], None],
        record: Callable[[Exchange], None] | None,
    ) -> None:
        self.exchanges: list[Exchange] = []
        self.stopped: Failure | None = None
        self._failed_in_a_row = 0
        self._endpoint = endpoint
        self._scribe = scribe
        self._seed = seed
        self._clock = clock
        self._emit = emit
        self._on_progress = on_progress
        self._record = record

    @property
    def spec(self) -> EndpointSpec:
        """The endpoint's description."""
        return self._endpoint.spec

    @property
    def run(self) -> str:
        """The run's name, another one each night."""
        return self._scribe.run

    @property
    def dialect(self) -> Dialect:
        """How the endpoint is spoken to."""
        return dialect_named(self._endpoint.spec.dialect)

    def rng(self) -> np.random.Generator:
        """Return the generator of this part and endpoint: the same for the same seed."""
        names = f"{self._scribe.probe}\0{self.spec.name}".encode()
        return np.random.default_rng([self._seed, zlib.crc32(names)])

    async def ask(self, requests: Sequence[Request]) -> AsyncGenerator[Exchange, None]:
        """Send ``requests`` in their order and yield each exchange as it finishes.

        Ends early, with ``stopped`` set, after `GIVE_UP_AFTER` failures in a row,
        those of earlier calls included.
        """
        if self.stopped is not None:
            return
        items = [(self._endpoint, request) for request in requests]
        async with aclosing(run_requests(items, clock=self._clock)) as exchanges:
            async for exchange in exchanges:
                ended = await self._keep(exchange)
                yield exchange
                if ended:
                    return

    async def show(self, chat: Chat, *, ways: Collection[str], name: str) -> tuple[Shown, ...]:
        """Return what the endpoint shows of a chat's prompt by these ways of its dialect.

        What is sent is kept as by `ask`, but for a chat that the endpoint does
        not take: that is no failure of an endpoint, and says so in what it shows.
        """
        if self.stopped is not None:
            return ()
        shown = await show(self._endpoint, chat, ways=ways, id=name)
        for one in shown:
            if one.exchange is not None:
                await self._keep(one.exchange, counts=not _not_taken(one.exchange))
        return shown

    async def number(
        self,
        metric: str,
        value: float,
        unit: str,
        n: int,
        *,
        context_length: int | None = None,
        label: str | None = None,
    ) -> None:
        """Hand on one number of the night; ``n`` is the number of prompts, answers or sessions behind it.

        ``label`` names the question that it is the number of, where it is one of several.
        """
        at = self._clock.now()
        await self._emit([self._scribe.one(metric, value, unit, n, at, context_length, label)])

    async def _keep(self, exchange: Exchange, *, counts: bool = True) -> bool:
        """Keep an exchange, and return whether it ends the asking."""
        if self._record is not None:
            self._record(exchange)
        if not counts:
            return False
        self.exchanges.append(exchange)
        await self._emit(self._scribe.of_exchange(exchange, None))
        self._on_progress(1)
        self._failed_in_a_row = self._failed_in_a_row + 1 if exchange.error is not None else 0
        if self._failed_in_a_row >= GIVE_UP_AFTER:
            self.stopped = exchange.error
        return self.stopped is not None


def _not_taken(exchange: Exchange) -> bool:
    return exchange.error is not None and exchange.error.kind in _REFUSALS
