"""Sequences of a baseline computed again, and held against what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from reference_engine.baselines.environment import environment_of
from reference_engine.baselines.exact import ExactScores
from reference_engine.baselines.reading import Baseline, require_same_tokens
from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from reference_engine.position_scores import PositionScores
from reference_engine.position_scoring import position_blocks
from ringtrue.errors import ModelError, UsageError

TOLERANCE = 2e-4
"""Nats. Two float32 computations of one model stay within it (docs/methods.md, "Divergence")."""


class Agreement(StrEnum):
    """How a recomputed sequence compares with the stored one."""

    EQUAL = "equal"  # bit for bit
    WITHIN = "within"  # not bit for bit, but within the tolerance, and in another environment
    DIFFERENT = "different"
    UNDECIDED = "undecided"  # half precision in another environment: no tolerance is known


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One sequence computed again.

    ``largest`` is the largest difference of a logprob, in nats;
    ``from_states`` the same for the distributions that the stored states
    give, ``None`` where none are stored.
    """

    sequence: int
    positions: int
    agreement: Agreement
    largest: float
    from_states: float | None


async def recompute(
    baseline: Baseline, engine: Engine, model: LoadedModel, indices: Iterable[int]
) -> AsyncGenerator[Recomputed, None]:
    """Compute these sequences again and yield how each agrees with what is stored.

    With the versions, device and threads of the build they must be equal bit
    for bit, else within 2e-4 nats; so must what the stored states give.

    Raises:
        ModelError: ``model`` is not the one the baseline is of.
        UsageError: the scores came from a server.
        StoreError, MeasureError: a shard is damaged, or the forward pass failed.
    """
    _require_same_model(baseline, model)
    source = ExactScores(engine, model)
    for index in indices:
        differences = [
            difference async for difference in _differences(baseline, engine, model, source, index)
        ]
        yield _concluded(baseline, model, index, differences)


def choose_sequences(baseline: Baseline, count: int, rng: np.random.Generator) -> list[int]:
    """Return the indices of ``count`` sequences, or of all if there are fewer, drawn by ``rng``, sorted."""
    drawn = rng.choice(len(baseline), size=min(count, len(baseline)), replace=False)
    return sorted(int(index) for index in drawn)


@dataclass(frozen=True, slots=True)
class _Difference:
    """A piece of a sequence against its recomputation, and against what its states give."""

    positions: int
    equal: bool
    largest: float
    from_states: float | None


async def _differences(
    baseline: Baseline, engine: Engine, model: LoadedModel, source: ExactScores, index: int
) -> AsyncGenerator[_Difference, None]:
    request = baseline.manifest.request
    ids = np.concatenate([ids for ids, _ in baseline.blocks(index)]).tolist()
    fresh = source.score(
        ids, k=request.k, states=request.states is not None, rows_per_block=request.rows_per_block
    )
    async with aclosing(fresh):
        for piece_ids, stored in baseline.blocks(index):
            again = await _next_rows(fresh, len(stored))
            equal, largest, from_states = _equal(stored, again), _largest(stored, again), None
            if stored.states is not None:
                read = partial(_from_states, model, piece_ids, stored, request.k, request.rows_per_block)
                derived = await asyncio.wrap_future(engine.call(read))
                equal, from_states = equal and _equal(stored, derived), _largest(stored, derived)
            yield _Difference(len(stored), equal, largest, from_states)


async def _next_rows(blocks: AsyncGenerator[PositionScores, None], rows: int) -> PositionScores:
    """Return the next ``rows`` rows: a stored piece is a whole number of blocks."""
    taken = [await anext(blocks)]
    while sum(map(len, taken)) < rows:
        taken.append(await anext(blocks))
    return PositionScores.joined(taken)


@torch.inference_mode()
def _from_states(
    model: LoadedModel, ids: NDArray[np.int32], stored: PositionScores, k: int, rows: int
) -> PositionScores:
    """Return the scores that the head makes of the stored states, on the engine thread."""
    scored = ids[-len(stored) :].tolist()
    states = torch.tensor(stored.states, dtype=model.network.dtype, device=model.device).unsqueeze(0)
    # The first ID has no score and only stands for what came before.
    blocks = position_blocks(model, [scored[0], *scored], states, k=k, states=True, rows_per_block=rows)
    return PositionScores.joined(list(blocks))


def _equal(one: PositionScores, other: PositionScores) -> bool:
    pairs = ((getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return all(a is b if a is None or b is None else np.array_equal(a, b) for a, b in pairs)


def _largest(one: PositionScores, other: PositionScores) -> float:
    """Return the largest difference of a logprob in nats; equal infinities do not differ."""
    pairs = ((one.logprobs, other.logprobs), (one.top_logprobs, other.top_logprobs))
    return max(
        float(np.abs(np.subtract(a, b, where=a != b, out=np.zeros_like(a))).max(initial=0)) for a, b in pairs
    )


def _concluded(baseline: Baseline, model: LoadedModel, index: int, pieces: list[_Difference]) -> Recomputed:
    states = [piece.from_states for piece in pieces if piece.from_states is not None]
    largest, from_states = max(piece.largest for piece in pieces), max(states) if states else None
    if all(piece.equal for piece in pieces):
        agreement = Agreement.EQUAL
    elif environment_of(model.device) == baseline.manifest.request.environment:
        agreement = Agreement.DIFFERENT
    elif max(largest, from_states or 0.0) <= TOLERANCE:
        agreement = Agreement.WITHIN
    else:
        agreement = Agreement.DIFFERENT if model.name.dtype == "fp32" else Agreement.UNDECIDED
    return Recomputed(index, sum(piece.positions for piece in pieces), agreement, largest, from_states)


def _require_same_model(baseline: Baseline, model: LoadedModel) -> None:
    request = baseline.manifest.request
    where = f"baseline {baseline.id[:12]} of {request.model.name}"
    if request.source.get("kind") != "exact":
        raise UsageError(
            "its scores came from a server and cannot be recomputed bit for bit",
            where=where,
            remedy="Its manifest holds the sample that was recomputed when it was built",
        )
    require_same_tokens(baseline, model)
    if model.weights_hash != request.model.weights:
        raise ModelError(
            f"{model.name} has other weights",
            where=where,
            remedy="Name the model it was built with by --model",
        )
