"""One cycle as a process runs it: with this machine's clock, signals, files and reference model."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import typer
from rich.console import Console

from collector.cycle import CycleResult, Models, over_http, run_cycle
from collector.night import Recorder
from probes.clock import Clock, system_clock
from reference_engine.local_reference import open_references
from ringtrue.config import Settings
from ringtrue.exit_codes import ExitCode
from ringtrue.interchange import ExchangeWriter
from ringtrue.progress import ProgressReport, progress_on
from ringtrue.records import Verdict
from ringtrue.store import Store, open_store


def run_session(settings: Settings, *, record: Path | None, keep: bool, wait: bool) -> tuple[Verdict, ...]:
    """Run one cycle and return its verdicts; progress goes to stderr.

    Without ``keep`` the store lives only as long as the run. Ctrl-C and
    SIGTERM end it in order, with one line that says what was kept.
    """
    clock = system_clock()
    with ExitStack() as stack:
        store = stack.enter_context(_store(settings.store.url if keep else None, clock))
        recorder = stack.enter_context(ExchangeWriter(record)).write if record is not None else None
        progress = stack.enter_context(progress_on(Console(stderr=True)))
        return asyncio.run(_cycle(settings, store, clock, progress, recorder, wait=wait)).verdicts


async def _cycle(
    settings: Settings,
    store: Store,
    clock: Clock,
    progress: ProgressReport,
    recorder: Recorder | None,
    *,
    wait: bool,
) -> CycleResult:
    task = asyncio.current_task()
    if task is not None:
        # Cron, systemd and Kubernetes stop a job by SIGTERM; it ends as Ctrl-C does.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)

    progress.say(f"Loading {', '.join((settings.reference.model, *settings.reference.others))}")
    try:
        async with AsyncExitStack() as stack:
            names = (settings.reference.model, *settings.reference.others)
            opened = await asyncio.to_thread(open_references, names, device=settings.reference.device)
            reference, *others = opened
            stack.push_async_callback(reference.aclose)
            return await run_cycle(
                settings,
                store=store,
                models=Models(reference, others),
                connect=over_http(os.environ, clock),
                clock=clock,
                progress=progress,
                recorder=recorder,
                wait=wait,
            )
    except asyncio.CancelledError as stopped:
        progress.say(f"Interrupted: {stopped.args[0] if stopped.args else 'nothing was sent'}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None


@contextmanager
def _store(url: str | None, clock: Clock) -> Iterator[Store]:
    with ExitStack() as stack:
        if url is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ringtrue-"))
            url = f"sqlite:///{folder}/ringtrue.db"
        store = open_store(url, clock=clock.now)
        stack.callback(store.close)
        yield store
