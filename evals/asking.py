"""Asking one endpoint every prompt once, and comparing each answer as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import numpy as np

from evals.answers import Answered, read
from evals.comparisons import Compared, Emit, compare
from evals.curve_numbers import Scribe
from evals.plan import ExaminePlan
from evals.preflight import preflight
from evals.truth import Truth
from probes.clock import Clock
from probes.context_curve import CurvePrompt, to_request
from probes.dialects import dialect_named
from probes.runner import run as run_requests
from probes.self_test import SelfTest, self_test
from ringtrue.endpoint import Endpoint
from ringtrue.records import Exchange, Failure, FailureKind, Party, Request

# After one of these, asking again only repeats it.
_HOPELESS = frozenset(
    {
        FailureKind.UNREACHABLE,
        FailureKind.TLS,
        FailureKind.CONNECT_TIMEOUT,
        FailureKind.HTML,
        FailureKind.NOT_FOUND,
        FailureKind.CAPABILITY_REFUSED,
        FailureKind.BUDGET,
    }
)


@dataclass(slots=True)
class Asked:
    """What was asked and what came back, growing while the endpoint answers.

    ``stopped`` is the failure that ended the asking early. ``k`` is the number
    of logprobs that the endpoint gives, ``None`` for none. ``trust`` is the
    self-test of its logprobs, ``None`` where it was not made.
    """

    prompts: tuple[CurvePrompt, ...]
    exchanges: list[Exchange] = field(default_factory=list)
    answers: list[Answered] = field(default_factory=list)
    compared: dict[str, Compared] = field(default_factory=dict)
    stopped: Failure | None = None
    k: int | None = None
    trust: SelfTest | None = None

    @property
    def blocked(self) -> Failure | None:
        """Why not one prompt was answered, or ``None`` where one was."""
        if any(answer.exchange.error is None for answer in self.answers):
            return None
        return self.stopped or next(e.error for e in self.exchanges if e.error is not None)


class Asking:
    """The asking of one endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        truth: Truth,
        plan: ExaminePlan,
        scribe: Scribe,
        *,
        clock: Clock,
        emit: Emit,
        on_progress: Callable[[int], None],
        record: Callable[[Exchange], None] | None,
    ) -> None:
        self._endpoint = endpoint
        self._dialect = dialect_named(endpoint.spec.dialect)
        self._truth = truth
        self._plan = plan
        self._scribe = scribe
        self._clock = clock
        self._emit = emit
        self._on_progress = on_progress
        self._record = record

    async def ask_all(self, prompts: Sequence[CurvePrompt]) -> Asked:
        """Ask ``prompts`` in an order drawn from the plan's seed, the reference beside them.

        The first prompt is the preflight; an endpoint that refuses it for good
        is not asked the others.
        """
        order = [prompts[i] for i in np.random.default_rng(self._plan.seed).permutation(len(prompts))]
        asked = Asked(tuple(prompts))
        opening = await preflight(
            self._endpoint, lambda k: self._request(order[0], k, 0), min(self._plan.k, self._truth.k)
        )
        asked.k = opening.k
        k = opening.asked
        tasks: list[asyncio.Task[None]] = []
        for exchange in opening.exchanges[:-1]:
            await self._keep(asked, order[0], exchange)
        tasks.append(await self._take(asked, order[0], opening.exchanges[-1], k))
        failure = opening.failure
        if failure is not None and (failure.party is Party.CALLER or failure.kind in _HOPELESS):
            asked.stopped = failure
            self._on_progress(len(order) - 1)
        else:
            if failure is None and opening.k is not None and self._plan.self_test:
                asked.trust = await self_test(self._endpoint, k=opening.k)
            await self._ask_rest(asked, order[1:], k, tasks)
        await asyncio.gather(*tasks)
        return asked

    async def _ask_rest(
        self, asked: Asked, rest: Sequence[CurvePrompt], k: int | None, tasks: list[asyncio.Task[None]]
    ) -> None:
        requests = {prompt.id: self._request(prompt, k, i + 1) for i, prompt in enumerate(rest)}
        by_id = {prompt.id: prompt for prompt in rest}
        items = [(self._endpoint, requests[prompt.id]) for prompt in rest]
        failed_in_a_row = 0
        async with aclosing(run_requests(items, clock=self._clock)) as exchanges:
            async for exchange in exchanges:
                prompt = by_id.pop(exchange.request.id)
                tasks.append(await self._take(asked, prompt, exchange, k))
                failed_in_a_row = failed_in_a_row + 1 if exchange.error is not None else 0
                if failed_in_a_row >= self._plan.give_up_after:
                    asked.stopped = exchange.error
                    break
        self._on_progress(len(by_id))

    def _request(self, prompt: CurvePrompt, k: int | None, turn: int) -> Request:
        request = to_request(prompt, k=k, dialect=self._dialect, stream=self._plan.stream)
        return replace(request, session=f"s{turn % self._plan.sessions}")

    async def _keep(self, asked: Asked, prompt: CurvePrompt, exchange: Exchange) -> None:
        if self._record is not None:
            self._record(exchange)
        asked.exchanges.append(exchange)
        await self._emit(self._scribe.of_exchange(exchange, prompt.bucket))

    async def _take(
        self, asked: Asked, prompt: CurvePrompt, exchange: Exchange, k: int | None
    ) -> asyncio.Task[None]:
        """Keep an exchange as the answer to its prompt, and start its comparison."""
        await self._keep(asked, prompt, exchange)
        truth = self._truth
        answer = read(
            prompt,
            exchange,
            truth.expected[prompt.id],
            truth.vocabulary,
            asked=k or 0,
            nearby=truth.nearby.get(prompt.id, ()),
        )
        asked.answers.append(answer)
        self._on_progress(1)
        return asyncio.create_task(self._compare(asked, answer))

    async def _compare(self, asked: Asked, answer: Answered) -> None:
        if answer.comparable:
            asked.compared[answer.prompt.id] = await compare(answer, self._truth, self._scribe, self._emit)
