"""One thread that owns every model of the process and runs every forward pass."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import TypeVar

import torch
from torch import Tensor

from reference_engine.batching import BatchLimits
from reference_engine.generation import Generation, GenerationSpec, Step, StepDrawer
from reference_engine.models.loading import LoadedModel, pick_device
from reference_engine.models.names import ModelName, parse_name
from reference_engine.models.shelf import ModelShelf
from reference_engine.position_scores import PositionScores
from reference_engine.position_scoring import position_blocks
from reference_engine.scoring import PromptScores, hidden_states, next_token_logprobs, prompt_scores
from reference_engine.stream import StepStream
from reference_engine.tasks import CallTask, GenerateTask, RowTask
from reference_engine.worker import EngineCounters, Worker
from ringtrue.endpoint import LogprobRow
from ringtrue.errors import UsageError

Result = TypeVar("Result")

_BATCH_TOKENS = {"cuda": 16_384}  # a CPU gains nothing beyond some 1,024 padded tokens


class Engine:
    """Scores and generates for any thread and any event loop, on one thread of its own.

    Waiting prompts of similar length are scored in one batch. Between two
    batches every running generation advances by one token, so neither starves
    the other. A job that fails fails alone; a job whose caller went away is
    dropped before it runs.
    """

    def __init__(self, *, device: str = "auto", limits: BatchLimits | None = None) -> None:
        """Start the thread.

        Raises:
            ModelError: the device cannot be used.
        """
        self.device = pick_device(device)
        self.limits = limits or BatchLimits(_BATCH_TOKENS.get(self.device.type, 1_024))
        self._shelf = ModelShelf(self.device)
        if self.device.type == "cuda":
            # cuBLAS is deterministic only with a workspace of fixed size, which it reads from here.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(mode=True)
        self._worker = Worker(self.limits)

    @property
    def counters(self) -> EngineCounters:
        """What the engine thread has done since it started."""
        return self._worker.counters

    def call(self, function: Callable[[], Result]) -> Future[Result]:
        """Run ``function`` on the engine thread, after what waits there already."""
        task = CallTask(function)
        self._worker.submit(task)
        return task.future

    def start_load(self, name: str | ModelName) -> Future[LoadedModel]:
        """Begin to load a model, or find it loaded.

        Raises:
            ModelError: the name cannot be parsed; the future raises it for a model that cannot be loaded.
        """
        parsed = parse_name(name) if isinstance(name, str) else name
        return self.call(partial(self._shelf.get, parsed))

    def load(self, name: str | ModelName) -> LoadedModel:
        """Load a model and wait for it: seconds. Not for an event loop.

        Raises:
            ModelError: it cannot be named, found, loaded or built.
        """
        return self.start_load(name).result()

    def start_score(
        self, model: LoadedModel, ids: Sequence[int], *, corrupt_beyond: int | None = None
    ) -> Future[LogprobRow]:
        """Begin to compute the float32 logprobs [vocabulary] of the token after ``ids``.

        Raises:
            UsageError: ``ids`` is empty, longer than the context, or holds an ID outside the vocabulary.
        """
        return self._submit_row(model, ids, corrupt_beyond, _to_numpy)

    async def score_prompt(
        self, model: LoadedModel, ids: Sequence[int], k: int, *, corrupt_beyond: int | None = None
    ) -> PromptScores:
        """Return the scores of every prompt token, with the ``k`` likeliest alternatives at each.

        Raises:
            UsageError: as ``start_score``.
            MeasureError: the forward pass failed.
        """
        require_usable(model, ids)
        return await asyncio.wrap_future(
            self.call(partial(self._score_prompt, model, ids, k, corrupt_beyond))
        )

    async def position_scores(
        self, model: LoadedModel, ids: Sequence[int], *, k: int, states: bool, rows_per_block: int
    ) -> AsyncGenerator[PositionScores, None]:
        """Yield the scores of every token of ``ids`` but the first, ``rows_per_block`` positions at a time.

        Raises:
            UsageError: as ``start_score``, or ``k`` is not in 1..vocabulary.
            MeasureError: the forward pass failed, or gave NaN or Inf (the place is named).
        """
        require_usable(model, ids)
        if not 1 <= k <= model.vocabulary_size:
            raise UsageError(f"k is {k}, it can be 1 to {model.vocabulary_size}", where=str(model.name))
        start = partial(self._start_positions, model, ids, k, states, rows_per_block)
        blocks = await asyncio.wrap_future(self.call(start))
        while (block := await asyncio.wrap_future(self.call(partial(next, blocks, None)))) is not None:
            yield block

    def start_batch(
        self, model: LoadedModel, sequences: Sequence[Sequence[int]], splits: Sequence[int]
    ) -> Future[list[LogprobRow]]:
        """Begin to score exactly these sequences in one batch, prefilled in chunks cut at ``splits``.

        Raises:
            UsageError: as ``start_score``.
        """
        for ids in sequences:
            require_usable(model, ids)
        return self.call(partial(self._score_batch, model, sequences, splits))

    async def generate(
        self,
        model: LoadedModel,
        ids: Sequence[int],
        spec: GenerationSpec,
        *,
        corrupt_beyond: int | None = None,
    ) -> AsyncGenerator[Step, None]:
        """Yield the tokens that continue ``ids``; closing the iterator ends the generation.

        One token without prompt scores costs one place in a scoring batch.

        Raises:
            UsageError: as ``start_score``.
            MeasureError: a forward pass failed.
        """
        if spec.max_tokens == 1 and spec.prompt_top is None:
            future = self._submit_row(model, ids, corrupt_beyond, StepDrawer(spec).draw)
            yield await asyncio.wrap_future(future)
            return
        require_usable(model, ids)
        stream = StepStream()
        generation = Generation(model, ids, spec, corrupt_beyond=corrupt_beyond)
        self._worker.submit(GenerateTask(generation, stream))
        try:
            async for step in stream:
                yield step
        finally:
            stream.cancel()

    def close(self) -> None:
        """Finish the step in progress, fail what still waits, and end the thread."""
        self._worker.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _submit_row(
        self,
        model: LoadedModel,
        ids: Sequence[int],
        corrupt_beyond: int | None,
        use: Callable[[Tensor], Result],
    ) -> Future[Result]:
        require_usable(model, ids)
        task = RowTask(model, tuple(ids), corrupt_beyond, use)
        self._worker.submit(task)
        return task.future

    # These run on the engine thread.

    @torch.inference_mode()
    def _start_positions(
        self, model: LoadedModel, ids: Sequence[int], k: int, states: bool, rows_per_block: int
    ) -> Iterator[PositionScores]:
        self._worker.counters.forward_passes += 1
        hidden = hidden_states(model, torch.tensor([ids], device=model.device))
        return position_blocks(model, ids, hidden, k=k, states=states, rows_per_block=rows_per_block)

    @torch.inference_mode()
    def _score_prompt(
        self, model: LoadedModel, ids: Sequence[int], k: int, corrupt_beyond: int | None
    ) -> PromptScores:
        self._worker.counters.forward_passes += 1
        tensor = torch.tensor([ids], device=model.device)
        return prompt_scores(model, ids, hidden_states(model, tensor, beyond=(corrupt_beyond,)), k)

    def _score_batch(
        self, model: LoadedModel, sequences: Sequence[Sequence[int]], splits: Sequence[int]
    ) -> list[LogprobRow]:
        self._worker.counters.forward_passes += len(splits) + 1
        return [_to_numpy(row) for row in next_token_logprobs(model, sequences, splits=splits)]


def require_usable(model: LoadedModel, ids: Sequence[int]) -> None:
    """Raise what is wrong with a prompt before it costs anything.

    Raises:
        UsageError: it is empty, longer than the context, or holds an ID outside the vocabulary.
    """
    if not ids:
        raise UsageError("the prompt has no tokens", where=str(model.name))
    if len(ids) > model.context_length:
        raise UsageError(
            f"the prompt has {len(ids)} tokens, the model takes {model.context_length}", where=str(model.name)
        )
    if min(ids) < 0 or max(ids) >= model.vocabulary_size:
        raise UsageError(
            f"the prompt holds a token ID outside 0..{model.vocabulary_size - 1}", where=str(model.name)
        )


def _to_numpy(row: Tensor) -> LogprobRow:
    return row.cpu().numpy().copy()  # a view would keep the whole batch alive
