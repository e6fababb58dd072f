"""The engine thread: a queue of tasks, batches of rows, and the running generations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from reference_engine.batching import BatchLimits, board, choose_batch
from reference_engine.generation import Generation
from reference_engine.scoring import next_token_logprobs
from reference_engine.stream import StepStream
from reference_engine.tasks import CallTask, GenerateTask, RowTask, Task, as_ringtrue_error
from ringtrue.errors import MeasureError


@dataclass(slots=True)
class EngineCounters:
    """What the engine thread has done: forward passes in all, and prompts that ran in a batch of rows."""

    forward_passes: int = 0
    batched_prompts: int = 0


class Worker:
    """Takes tasks from any thread and runs them on its own.

    Each turn runs one batch of waiting rows, or one task of another kind, and
    then advances every running generation by one token. A task that fails
    fails alone; one whose caller went away is dropped before it runs.
    """

    def __init__(self, limits: BatchLimits) -> None:
        self.counters = EngineCounters()
        self._limits = limits
        self._changed = threading.Condition()
        self._waiting: list[Task] = []
        self._running: list[tuple[Generation, StepStream]] = []
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="ringtrue-engine", daemon=True)
        self._thread.start()

    def submit(self, task: Task) -> None:
        """Append a task.

        Raises:
            MeasureError: the worker is closed.
        """
        with self._changed:
            if self._closing:
                raise MeasureError("the engine is closed")
            self._waiting.append(task)
            self._changed.notify()

    def close(self) -> None:
        """Finish the turn in progress, fail what still waits or runs, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    # Everything below runs on the engine thread.

    def _work(self) -> None:
        try:
            while (tasks := self._next()) is not None:
                self._start(tasks)
                self._advance()
        finally:
            # Also when the thread itself breaks: whoever waits must hear of it.
            self._abandon()

    def _next(self) -> list[Task] | None:
        """Wait for something to do and return the tasks to start; ``None`` at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._waiting or self._running)
            return None if self._closing else self._take()

    def _take(self) -> list[Task]:
        """Remove and return what runs next: a batch of rows, or one task of another kind."""
        self._waiting = [task for task in self._waiting if not task.cancelled]
        if not self._waiting:
            return []
        taken: list[Task] = [self._waiting[0]]
        if isinstance(self._waiting[0], RowTask):
            rows = [task for task in self._waiting if isinstance(task, RowTask)]
            taken = [*choose_batch(rows, self._limits)]
        chosen = {id(task) for task in taken}
        self._waiting = [task for task in self._waiting if id(task) not in chosen]
        return taken

    def _start(self, tasks: list[Task]) -> None:
        rows = [task for task in tasks if isinstance(task, RowTask)]
        if rows:
            self._run_rows([task for task in rows if task.future.set_running_or_notify_cancel()])
            return
        for task in tasks:
            if isinstance(task, CallTask) and task.future.set_running_or_notify_cancel():
                _settle(task.future, task.run)
            elif isinstance(task, GenerateTask):
                self._running.append((task.generation, task.stream))

    def _run_rows(self, tasks: list[RowTask]) -> None:
        if not tasks:
            return
        try:
            self.counters.forward_passes += 1
            boarded = board(tasks)
            hosts = [index for index, host in enumerate(boarded) if index == host]
            riders = [index for index, host in enumerate(boarded) if index != host]
            rows = next_token_logprobs(
                tasks[0].model,
                [tasks[index].ids for index in hosts],
                beyond=[tasks[index].corrupt_beyond for index in hosts],
                riders=[(hosts.index(boarded[index]), tasks[index].length) for index in riders],
            )
        except Exception as error:  # noqa: BLE001  # whatever a pass raises belongs to its jobs, not to the thread
            if len(tasks) == 1:
                tasks[0].future.set_exception(as_ringtrue_error(error))
                return
            for task in tasks:
                self._run_rows([task])
            return
        self.counters.batched_prompts += len(tasks)
        for index, row in zip((*hosts, *riders), rows, strict=True):
            _settle(tasks[index].future, partial(tasks[index].use, row))

    def _advance(self) -> None:
        """Let every running generation draw one token."""
        for generation, stream in self._running:
            if stream.cancelled:
                generation.finished = True
                continue
            try:
                self.counters.forward_passes += 1
                stream.put(generation.step())
            except Exception as error:  # noqa: BLE001  # as above: this answer fails, the others go on
                generation.finished = True
                stream.put(as_ringtrue_error(error))
        self._running = [pair for pair in self._running if not pair[0].finished]

    def _abandon(self) -> None:
        with self._changed:
            self._closing = True
            waiting, self._waiting = self._waiting, []
        closed = MeasureError("the engine was closed before the job was done")
        streams = [stream for _, stream in self._running]
        for task in waiting:
            if isinstance(task, GenerateTask):
                streams.append(task.stream)
            elif task.future.set_running_or_notify_cancel():
                task.future.set_exception(closed)
        for stream in streams:
            stream.put(closed)


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    try:
        result = function()
    except Exception as error:  # noqa: BLE001  # the error belongs to whoever waits for the future
        future.set_exception(as_ringtrue_error(error))
    else:
        future.set_result(result)
