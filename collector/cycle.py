"""One cycle: what it will cost, the lease, and the night that examines, stores and concludes."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from collector.floors import StoredFloors
from collector.lease import cycle_lease
from collector.night import Night, Recorder
from collector.parts import parts_for
from collector.series import watch_for
from collector.spending import budget_for, most_it_can_cost
from evals.dated import ANY_DAY, is_dated, on_day
from evals.identity import Registered, register
from evals.plan import ExaminePlan
from evals.questions import Questions
from evals.truth import Truth
from probes import http_endpoint
from probes.budget import Budget, render_cost
from probes.clock import Clock
from probes.rotation import prompts_tonight
from ringtrue.config import Settings
from ringtrue.endpoint import Endpoint, Reference
from ringtrue.progress import ProgressReport
from ringtrue.records import EndpointSpec, Verdict
from ringtrue.store import Store

Connect = Callable[[EndpointSpec, Budget], Endpoint]
"""Makes the endpoint a spec describes; it spends from the budget."""


def over_http(env: Mapping[str, str], clock: Clock) -> Connect:
    """Return what connects to endpoints over HTTP, with their keys from ``env``."""

    def connect(spec: EndpointSpec, budget: Budget) -> Endpoint:
        return http_endpoint.connect(spec, env, clock=clock, budget=budget)

    return connect


@dataclass(frozen=True, slots=True)
class Models:
    """The reference, which holds the truth, and the models that are registered beside it."""

    reference: Reference
    others: Sequence[Reference] = ()


@dataclass(frozen=True, slots=True)
class CycleResult:
    """A cycle that came to its end: its run and all its verdicts, by endpoint in the settings' order."""

    run: str
    verdicts: tuple[Verdict, ...]


async def run_cycle(
    settings: Settings,
    *,
    store: Store,
    models: Models,
    connect: Connect,
    clock: Clock,
    progress: ProgressReport,
    recorder: Recorder | None = None,
    wait: bool = False,
) -> CycleResult:
    """Examine every endpoint of ``settings`` once.

    ``models`` are those of ``settings.reference``, opened. Cancelled, it marks
    the run as interrupted, and its `asyncio.CancelledError` says in one
    sentence what was kept.

    Raises:
        LeaseHeldError: Another cycle runs on this store, and ``wait`` is false.
        BudgetError: It would cost more than it may; nothing was sent.
        ConfigError: A bucket, an endpoint or its key cannot be used; nothing was sent.
        StoreError: The store refused; what it had acknowledged before is kept.
    """
    specs = [endpoint.to_spec() for endpoint in settings.endpoints]
    started = clock.now()
    reference = on_day(models.reference, started)
    registered = await asyncio.to_thread(register, reference, models.others)
    questions = _questions(settings, reference, registered, StoredFloors(store), at=started)
    truth, parts = questions.truth, questions.parts
    basis = questions.basis
    if is_dated(reference):
        # The date in tonight's prompts is no difference from the nights before.
        undated = on_day(reference, ANY_DAY)
        basis = _questions(settings, undated, registered, StoredFloors(store), at=started).basis
    budget = budget_for(settings.budget, specs, questions)
    run = f"{clock.now():%Y%m%dT%H%M%SZ}-{uuid4().hex[:6]}"
    holder = f"{socket.gethostname()} pid {os.getpid()} (run {run})"
    async with AsyncExitStack() as stack:
        stack.push_async_callback(truth.aclose)
        for part in parts:
            stack.push_async_callback(part.aclose)
        endpoints = []
        for spec in specs:
            endpoints.append(connect(spec, budget))
            stack.push_async_callback(endpoints[-1].aclose)
        lease = await stack.enter_async_context(
            cycle_lease(store, holder, sleep=clock.sleep, wait=wait, say=progress.say)
        )
        progress.say(render_cost(most_it_can_cost(specs, questions)))
        previous = await asyncio.to_thread(store.previous_verdicts)
        names = {spec.name for spec in specs} | {endpoint for endpoint, _ in previous}
        watch = watch_for(settings, endpoints=len(names), basis=basis)
        night = Night(run, clock.now(), store, questions, previous, watch, clock, progress, recorder)
        return CycleResult(run, await night.watch_over(endpoints, lease))


def _questions(
    settings: Settings,
    reference: Reference,
    registered: Registered,
    floors: StoredFloors,
    *,
    at: datetime,
) -> Questions:
    """Return what is asked of every endpoint in the night that begins ``at``; nothing is computed yet."""
    probe, floor_dtype = settings.probe, settings.reference.floor_dtype
    plan = ExaminePlan(k=probe.top_k, seed=probe.seed, stream=probe.stream)
    prompts = prompts_tonight(
        reference,
        probe.buckets,
        seed=probe.seed,
        turn=at.date().toordinal(),
        turns=probe.turns,
        languages=probe.languages,
    )
    truth = Truth(reference, prompts, floor_dtype=floor_dtype, k=plan.k, seed=plan.seed, cache=floors, now=at)
    # A part that judges one night alone shares the budget of false alarms with every series.
    alarm = watch_for(settings, endpoints=len(settings.endpoints), basis="").rule.threshold
    parts = parts_for(settings, reference, floors, alarm=alarm, at=at)
    return Questions(truth, plan, parts, registered)
