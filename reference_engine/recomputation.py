"""Sequences scored again: exactly, and as an honest server would. What a server's scores are held against."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from reference_engine.divergence.states import batch_states
from reference_engine.engine import Engine, require_usable
from reference_engine.jitter import plan_batches
from reference_engine.models.loading import LoadedModel
from reference_engine.position_scores import PositionScores
from reference_engine.position_scoring import TILE_ELEMENTS, position_blocks
from reference_engine.scoring import hidden_states


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One sequence of n tokens, one row for each token but the first; logprobs in nats.

    ``honest`` are the scores in the floor's dtype, with batch and prefill
    chunks drawn at random. The others are exact, in float32: of the tokens
    that were asked about (``exact`` [n-1, columns]) and of those that
    ``honest`` lists (``exact_honest`` [n-1, k]).
    """

    honest: PositionScores
    exact: NDArray[np.float32]
    exact_honest: NDArray[np.float32]


async def recompute(
    engine: Engine,
    model: LoadedModel,
    sequences: Sequence[Sequence[int]],
    wanted: Sequence[NDArray[np.int32]],
    *,
    k: int,
    dtype: str,
    seed: int,
) -> list[Recomputed]:
    """Score each of ``sequences`` once by ``model``, which is in float32, and once in ``dtype`` with jitter.

    ``wanted`` holds, for each sequence, the token IDs [n-1, columns] whose
    exact logprobs are asked for. Results are in the order given and depend on
    ``seed`` (docs/methods.md, "Noise floor").

    Raises:
        ModelError: there is no such dtype.
        UsageError: a sequence is empty, too long, or holds an ID outside the vocabulary.
        MeasureError: the forward pass failed.
    """
    for ids in sequences:
        require_usable(model, ids)
    in_dtype = await asyncio.wrap_future(engine.start_load(model.name.with_dtype(dtype)))
    batches = plan_batches([len(ids) for ids in sequences], np.random.default_rng(seed), engine.limits)
    honest: dict[int, PositionScores] = {}
    for batch in batches:
        members = [sequences[index] for index in batch.members]
        job = engine.call(partial(_in_one_batch, in_dtype, members, batch.splits, k))
        scores = await asyncio.wrap_future(job)
        honest |= dict(zip(batch.members, scores, strict=True))
    found = []
    for index, (ids, asked) in enumerate(zip(sequences, wanted, strict=True)):
        columns = np.concatenate([asked, honest[index].top_ids], axis=1)
        exact = await asyncio.wrap_future(engine.call(partial(_exact, model, ids, columns)))
        width = asked.shape[1]
        found.append(Recomputed(honest[index], exact[:, :width], exact[:, width:]))
    return found


# These run on the engine thread.


@torch.inference_mode()
def _in_one_batch(
    model: LoadedModel, sequences: Sequence[Sequence[int]], splits: Sequence[int], k: int
) -> list[PositionScores]:
    """Score sequences together, in one padded pass."""
    return [
        PositionScores.joined(
            list(position_blocks(model, ids, states.unsqueeze(0), k=k, states=False, rows_per_block=len(ids)))
        )
        for ids, states in zip(sequences, batch_states(model, sequences, splits=splits), strict=True)
    ]


@torch.inference_mode()
def _exact(model: LoadedModel, ids: Sequence[int], columns: NDArray[np.int32]) -> NDArray[np.float32]:
    hidden = hidden_states(model, torch.tensor([ids], device=model.device))
    wanted = torch.tensor(columns, dtype=torch.long, device=model.device)
    rows = max(1, TILE_ELEMENTS // model.vocabulary_size)
    parts = []
    for start in range(0, len(ids) - 1, rows):
        stop = min(start + rows, len(ids) - 1)
        logits = model.head(hidden[:, start:stop])[0].float()
        parts.append(torch.log_softmax(logits, dim=-1).gather(1, wanted[start:stop]))
    return torch.cat(parts).cpu().numpy()
