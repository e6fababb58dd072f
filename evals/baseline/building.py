"""``ringtrue baseline build`` as a process runs it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evals.baseline.report import in_bytes
from reference_engine.baselines.building import Build, build_baseline
from reference_engine.baselines.corpus import Corpus
from reference_engine.baselines.corpus_files import CorpusForm, read_corpus
from reference_engine.baselines.exact import ExactScores, exact_request
from reference_engine.baselines.store import BaselineStore, StoredBaseline
from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from ringtrue.errors import UsageError
from ringtrue.progress import ProgressReport
from ringtrue.report import counted

ResultT = TypeVar("ResultT")

EVERYTHING = "all"
"""The k that asks for the whole vocabulary."""


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """What the command line asked for. ``k`` is a number or ``all``; ``length`` as ``read_corpus``."""

    model: str
    corpus: tuple[Path, ...]
    store: BaselineStore
    k: str = "20"
    states: bool = False
    form: CorpusForm | None = None
    length: int | None = None
    generation_prompt: bool = True
    device: str = "auto"


def build_exact(order: BuildOrder, progress: ProgressReport) -> tuple[StoredBaseline, bool]:
    """Return the baseline that the reference engine computes, and whether it had to be built.

    Raises:
        UsageError, ModelError: the order cannot be carried out; the message says why.
        MeasureError, StoreError: as ``build_baseline``.
    """
    with opened_order(order, progress) as (engine, model, corpus, k):
        build = Build(corpus, exact_request(model, corpus, k=k, states=order.states))
        progress.say(announcement(build))
        source = ExactScores(engine, model)
        return run_interruptibly(build_baseline(build, source, order.store, progress))


@contextmanager
def opened_order(
    order: BuildOrder, progress: ProgressReport
) -> Iterator[tuple[Engine, LoadedModel, Corpus, int]]:
    """Yield the engine, the model in it, the corpus as the model tokenizes it, and k as a number.

    Raises:
        UsageError, ModelError: the order cannot be carried out; the message says why.
    """
    k = None if order.k == EVERYTHING else _number(order.k)
    with Engine(device=order.device) as engine:
        progress.say(f"loading {order.model}")
        model = engine.load(order.model)
        corpus = read_corpus(
            order.corpus,
            model,
            form=order.form,
            length=order.length,
            generation_prompt=order.generation_prompt,
        )
        yield engine, model, corpus, k or model.vocabulary_size


def run_interruptibly(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run ``work`` on an event loop of its own and return its result; SIGTERM ends it as Ctrl-C does."""

    async def interruptible() -> ResultT:
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(interruptible())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def announcement(build: Build) -> str:
    """Return what a build will cost, before it begins."""
    request, plan = build.request, build.plan
    corpus = request.corpus
    return (
        f"{request.model.name} on {request.environment.device}: "
        f"{counted(corpus.sequences, 'sequence')} of {counted(corpus.tokens, 'token')}, "
        f"{counted(build.corpus.positions, 'position')} to score with k = {request.k:,}"
        f"{' and states' if request.states else ''}; "
        f"about {in_bytes(plan.rows * request.row_bytes)} in {counted(len(plan.shards), 'shard')}"
    )


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise UsageError(f"k cannot be {text!r}", remedy=f"Give a number from 1 on, or {EVERYTHING}")
    return int(text)
