"""The noise floor over the whole vocabulary: the reference against itself, computed as a server would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reference_engine.divergence.comparison import Advance, require_scorable, states_divergence
from reference_engine.divergence.states import ReferenceStates, batch_states
from reference_engine.divergence.tiles import RowDivergence
from reference_engine.engine import Engine
from reference_engine.jitter import JitterBatch, plan_batches
from reference_engine.models.loading import LoadedModel


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """What an honest server in ``dtype`` shows: ``draws[i][j]`` is draw i of the batching, sequence j."""

    dtype: str
    draws: tuple[tuple[RowDivergence, ...], ...]

    @property
    def kl(self) -> NDArray[np.float64]:
        """KL(P || Q), nats, [draws, positions of all sequences in order]."""
        return np.stack([np.concatenate([rows.kl for rows in draw]) for draw in self.draws])


def measure_floor(
    engine: Engine,
    reference: ReferenceStates,
    sequences: Sequence[Sequence[int]],
    *,
    dtype: str,
    seed: int,
    draws: int = 1,
    advance: Advance = lambda _: None,
) -> NoiseFloor:
    """Return the divergence of the reference, computed in ``dtype`` in jittered batches, from itself.

    P is the reference's single unpadded pass, Q the same weights in ``dtype``
    with batch composition and prefill chunks drawn from ``seed``
    (``jitter.plan_batches``), anew for each of ``draws``. In fp32 only the
    order of additions differs: some 1e-9 nats, the numeric floor. Waits for
    the engine: not for an event loop. See docs/methods.md, "Noise floor".

    Raises:
        ModelError: there is no such dtype.
        UsageError: a sequence is too short, or does not fit the model.
        MeasureError: a value is NaN or infinite (the place is named), or memory ran out.
        ValueError: ``draws`` is not positive.
    """
    if draws < 1:
        raise ValueError(f"{draws} draws give no floor")
    for ids in sequences:
        require_scorable(reference.model, ids)
    served = engine.load(reference.model.name.with_dtype(dtype))
    drawn = []
    for draw in range(draws):
        rng = np.random.default_rng((seed, draw))
        found: dict[int, RowDivergence] = {}
        for batch in plan_batches([len(ids) for ids in sequences], rng, engine.limits):
            found |= engine.call(partial(_run_batch, reference, served, sequences, batch)).result()
            advance(sum(len(sequences[index]) for index in batch.members))
        drawn.append(tuple(found[index] for index in range(len(sequences))))
    return NoiseFloor(dtype, tuple(drawn))


def _run_batch(
    reference: ReferenceStates, served: LoadedModel, sequences: Sequence[Sequence[int]], batch: JitterBatch
) -> dict[int, RowDivergence]:
    members = [sequences[index] for index in batch.members]
    states = batch_states(served, members, splits=batch.splits)
    return {
        index: states_divergence(reference.model, reference(ids), served, q_states, ids)
        for index, ids, q_states in zip(batch.members, members, states, strict=True)
    }
