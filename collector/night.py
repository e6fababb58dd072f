"""A run from its start to its end, whichever end that is.

What is measured is stored as it comes and each endpoint is concluded as soon
as it is done, so that a run that is cut short keeps what it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from collector.earlier import earlier_rows
from collector.lease import Lease
from collector.series import Watch, judge_series
from evals.examine import examine
from evals.questions import Questions
from probes.clock import Clock
from ringtrue.endpoint import Endpoint
from ringtrue.errors import RingtrueError, StoreError
from ringtrue.progress import ProgressReport
from ringtrue.records import Exchange, Observation, Verdict
from ringtrue.store import RunStatus, Store
from ringtrue.verdict import Previous, conclude

Recorder = Callable[[Exchange], None]
"""Is given every exchange; what it keeps is the user's wish."""


@dataclass(slots=True)
class Night:
    """A run under way: what it needs, and the verdicts it has reached so far."""

    run: str
    started: datetime
    store: Store
    questions: Questions
    previous: Previous
    watch: Watch
    clock: Clock
    progress: ProgressReport
    recorder: Recorder | None
    verdicts: dict[str, tuple[Verdict, ...]] = field(default_factory=dict)

    async def watch_over(self, endpoints: Sequence[Endpoint], lease: Lease) -> tuple[Verdict, ...]:
        """Examine the endpoints, and close the run in whatever way it ends."""
        try:
            await asyncio.to_thread(self.store.start_run, self.run, self.watch.basis)
            await self._examine_all(endpoints, lease)
        except asyncio.CancelledError:
            await asyncio.to_thread(
                self.store.finish_run, self.run, RunStatus.INTERRUPTED, "stopped from outside"
            )
            raise asyncio.CancelledError(await self._what_was_kept(len(endpoints))) from None
        except Exception as error:
            reason = str(error) if isinstance(error, RingtrueError) else type(error).__name__
            # A store that has just failed may fail again; the next run closes this one then.
            with suppress(StoreError):
                await asyncio.to_thread(self.store.finish_run, self.run, RunStatus.FAILED, reason)
            raise
        await asyncio.to_thread(self.store.finish_run, self.run, RunStatus.OK)
        return tuple(verdict for endpoint in endpoints for verdict in self.verdicts[endpoint.spec.name])

    async def _examine_all(self, endpoints: Sequence[Endpoint], lease: Lease) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                renewal = group.create_task(lease.keep())
                await asyncio.wait([group.create_task(self._examine(endpoint)) for endpoint in endpoints])
                renewal.cancel()
        except BaseExceptionGroup as failures:
            raise _first(failures) from failures

    async def _examine(self, endpoint: Endpoint) -> None:
        name = endpoint.spec.name
        self.progress.begin(name, self.questions.steps(endpoint.spec))
        found = await examine(
            endpoint,
            self.questions,
            run=self.run,
            clock=self.clock,
            emit=self._keep,
            on_progress=lambda steps: self.progress.advance(name, steps),
            record=self.recorder,
            earlier=await asyncio.to_thread(
                earlier_rows,
                self.store,
                name,
                self.watch.basis,
                self.questions.truth.turning,
                run=self.run,
                at=self.started,
            ),
        )
        judged = await asyncio.to_thread(
            judge_series, self.store, name, found.findings, self.watch, run=self.run, at=self.started
        )
        verdicts = conclude(
            name, found.model, judged.findings, previous=self.previous, run=self.run, at=self.started
        )
        await asyncio.to_thread(self.store.conclude, self.run, judged.findings, verdicts, judged.alarms)
        self.verdicts[name] = verdicts

    async def _keep(self, observations: Sequence[Observation]) -> None:
        await asyncio.to_thread(self.store.add_observations, observations)

    async def _what_was_kept(self, endpoints: int) -> str:
        # Asked of the store: a write that was under way when we were stopped may have been kept too.
        observations = await asyncio.to_thread(self.store.count_observations, self.run)
        current = await asyncio.to_thread(self.store.current_verdicts)
        concluded = {verdict.endpoint for verdict in current if verdict.run == self.run}
        return (
            f"run {self.run} keeps {observations:,} observations "
            f"and the verdicts of {len(concluded)} of {endpoints} endpoints"
        )


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the failure that made the task group stop; the others followed from it or came with it."""
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
