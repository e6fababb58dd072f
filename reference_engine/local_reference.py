"""The truth behind ``ringtrue.endpoint.Reference``: a model of ours, in float32."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from datetime import datetime
from typing import Any

import numpy as np

from reference_engine.engine import Engine
from reference_engine.generation import GenerationSpec
from reference_engine.jitter import plan_batches
from reference_engine.models.loading import LoadedModel
from reference_engine.models.names import ModelName, parse_name
from reference_engine.position_scores import PositionScores
from ringtrue.endpoint import Forced, LogprobRow
from ringtrue.errors import ModelError, RingtrueError

_REMEMBERED_BYTES = 256 * 2**20


class LocalReference:
    """One float32 model as the reference.

    Rows are remembered by their token IDs, up to 256 MiB, and concurrent
    requests for the same IDs share one computation. Rows are read-only.
    """

    def __init__(
        self,
        engine: Engine,
        model: LoadedModel,
        *,
        owns_engine: bool = False,
        now: datetime | None = None,
    ) -> None:
        """Wrap ``model``, which ``engine`` loaded; ``now`` is what its template's clock shows.

        Raises:
            ModelError: the model computes in less than float32.
        """
        _require_float32(model.name)
        self.engine = engine
        self._loaded = model
        self._owns_engine = owns_engine
        self._now = now
        self._rows: OrderedDict[tuple[int, ...], Future[LogprobRow]] = OrderedDict()
        self._most_rows = max(1, _REMEMBERED_BYTES // (4 * model.vocabulary_size))

    @property
    def model(self) -> str:
        """The model's name, variant included."""
        return str(self._loaded.name)

    @property
    def fingerprint(self) -> str:
        """A hash of weights, tokenizer and template: 64 hex digits."""
        return self._loaded.fingerprint

    @property
    def context_length(self) -> int:
        """The longest sequence the model takes, in tokens."""
        return self._loaded.context_length

    @property
    def vocabulary_size(self) -> int:
        """The length of a logprob row."""
        return self._loaded.vocabulary_size

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokenize plain text; special tokens in it stay text, none is added."""
        return self._loaded.codec.encode(text)

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """Tokenize a prompt as servers do: special tokens in it count as such."""
        return self._loaded.codec.encode_prompt(text, add_special_tokens=add_special_tokens)

    def decode(self, ids: Sequence[int]) -> str:
        """Turn token IDs into text, special tokens included."""
        return self._loaded.codec.decode(ids)

    @property
    def template(self) -> str | None:
        """The source of the chat template, ``None`` if the model has none."""
        return self._loaded.codec.template

    @property
    def tool_template(self) -> str | None:
        """The one for requests with tools, where the model has two; else the same."""
        return self._loaded.codec.tool_template

    @property
    def special_tokens(self) -> Mapping[str, str]:
        """The named special tokens as text."""
        return self._loaded.codec.special_tokens

    @property
    def special_ids(self) -> frozenset[int]:
        """The IDs of all control and added tokens."""
        return self._loaded.codec.special_ids

    @property
    def bos_id(self) -> int | None:
        """The ID that begins a sequence."""
        return self._loaded.codec.bos_id

    @property
    def end_ids(self) -> frozenset[int]:
        """The IDs that end a turn or an answer, by the tokenizer and by the model's settings."""
        return self._loaded.codec.end_ids | self._loaded.eos_ids

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes one token stands for; none for an ID that the tokenizer does not use."""
        return self._loaded.codec.token_bytes(token_id)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> tuple[int, ...]:
        """The token IDs of a chat with the generation prompt, by the model's own template.

        Raises:
            ModelError: the model has no template, or the template refuses the messages.
        """
        return self._loaded.codec.render(messages, tools, now=self._now)

    def on_day(self, now: datetime) -> LocalReference:
        """Return the same model, whose template finds ``now`` on the clock; closing it closes nothing."""
        return LocalReference(self.engine, self._loaded, now=now)

    async def next_token(self, ids: Sequence[int]) -> LogprobRow:
        """Exact float32 logprobs [vocabulary] of the token after ``ids``, in nats.

        Raises:
            UsageError: ``ids`` is empty, longer than the context, or holds an ID outside the vocabulary.
            MeasureError: the forward pass failed.
        """
        key = tuple(ids)
        future = self._rows.get(key)
        if future is None or _failed(future):
            future = self._rows[key] = self.engine.start_score(self._loaded, key)
        self._rows.move_to_end(key)
        while len(self._rows) > self._most_rows:
            self._rows.popitem(last=False)
        # One waiter that goes away must not take the row from the others.
        row = await asyncio.shield(asyncio.wrap_future(future))
        row.flags.writeable = False
        return row

    async def jittered(self, ids: Sequence[Sequence[int]], *, dtype: str, seed: int) -> list[LogprobRow]:
        """Logprobs after each sequence as an honest server would compute them; one row a sequence, in order.

        Batch composition and prefill chunks are drawn from ``seed``. The
        first use of a dtype builds the model's copy in it.

        Raises:
            ModelError: there is no such dtype.
            UsageError, MeasureError: as ``next_token``.
        """
        name = self._loaded.name.with_dtype(dtype)
        model = await asyncio.wrap_future(self.engine.start_load(name))
        batches = plan_batches(
            [len(sequence) for sequence in ids], np.random.default_rng(seed), self.engine.limits
        )
        jobs = [self.engine.start_batch(model, [ids[i] for i in b.members], b.splits) for b in batches]
        results = await asyncio.gather(*(asyncio.wrap_future(job) for job in jobs))
        rows = {
            index: row
            for batch, result in zip(batches, results, strict=True)
            for index, row in zip(batch.members, result, strict=True)
        }
        return [rows[index] for index in range(len(ids))]

    async def forced(
        self, prompt: Sequence[int], continuation: Sequence[int], *, k: int, dtype: str = "fp32"
    ) -> Forced:
        """What the model says of each token of ``continuation`` after ``prompt``, in one pass in ``dtype``.

        Raises:
            ModelError: there is no such dtype.
            UsageError, MeasureError: as ``next_token``.
        """
        model = await asyncio.wrap_future(self.engine.start_load(self._loaded.name.with_dtype(dtype)))
        ids = (*prompt, *continuation)
        scores = self.engine.position_scores(model, ids, k=k, states=False, rows_per_block=len(ids))
        whole = PositionScores.joined([block async for block in scores])
        rows = whole.rows(len(prompt) - 1, len(whole))
        return Forced(rows.logprobs, rows.top_ids.astype(np.int64), rows.top_logprobs)

    async def greedy(self, prompt: Sequence[int], *, max_tokens: int, dtype: str = "fp32") -> tuple[int, ...]:
        """The tokens that the model in ``dtype`` likes best after ``prompt``, up to the one that ends it.

        Raises:
            ModelError: there is no such dtype.
            UsageError, MeasureError: as ``next_token``.
        """
        model = await asyncio.wrap_future(self.engine.start_load(self._loaded.name.with_dtype(dtype)))
        spec = GenerationSpec(max_tokens, stop_ids=model.eos_ids)
        async with aclosing(self.engine.generate(model, tuple(prompt), spec)) as steps:
            return tuple([step.token_id async for step in steps])

    async def aclose(self) -> None:
        """End the engine if it was opened for this reference alone."""
        if self._owns_engine:
            await asyncio.to_thread(self.engine.close)


def _failed(future: Future[LogprobRow]) -> bool:
    return future.cancelled() or (future.done() and future.exception() is not None)


def open_reference(name: str, *, device: str = "auto") -> LocalReference:
    """Load the model ``name`` in an engine of its own; takes seconds.

    Raises:
        ModelError: the model or the device cannot be used.
    """
    return open_references((name,), device=device)[0]


def open_references(names: Sequence[str], *, device: str = "auto") -> tuple[LocalReference, ...]:
    """Load models in one engine, in the order given; takes seconds each.

    Variants of one base share the weights they have in common. The first
    reference owns the engine: closing it ends all of them. Names are checked
    before anything is loaded.

    Raises:
        ModelError: a name cannot be parsed, computes in less than float32 or
            names a model twice, or a model or the device cannot be used.
    """
    parsed = [parse_name(name) for name in names]
    for index, one in enumerate(parsed):
        _require_float32(one)
        if one.canonical in [earlier.canonical for earlier in parsed[:index]]:
            raise ModelError("the model is named twice", where=str(one), remedy="Name each model once")
    if not parsed:
        return ()
    engine = Engine(device=device)
    try:
        loaded = [engine.load(one) for one in parsed]
        return tuple(
            LocalReference(engine, model, owns_engine=index == 0) for index, model in enumerate(loaded)
        )
    except RingtrueError:
        engine.close()
        raise


def _require_float32(name: ModelName) -> None:
    if name.dtype != "fp32":
        raise ModelError(
            f"a reference computes in fp32, not in {name.dtype}",
            where=str(name),
            remedy="Leave the dtype out of the reference's name",
        )
