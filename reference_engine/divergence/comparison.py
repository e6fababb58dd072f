"""Two models on the same token sequences, over the whole vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from reference_engine.divergence.states import ReferenceStates, batch_states
from reference_engine.divergence.tiles import RowDivergence, tiled_divergence
from reference_engine.engine import Engine, require_usable
from reference_engine.models.comparable import require_comparable
from reference_engine.models.loading import LoadedModel
from ringtrue.errors import MeasureError, UsageError

Advance = Callable[[int], object]
"""Told the tokens of each sequence when it is done."""


def compare_models(
    engine: Engine,
    reference: ReferenceStates,
    candidate: LoadedModel,
    sequences: Sequence[Sequence[int]],
    *,
    advance: Advance = lambda _: None,
) -> tuple[RowDivergence, ...]:
    """Return, for each sequence, how far ``candidate`` lies from the reference at every token but the first.

    Both models see each sequence alone, in one pass; the states of one
    sequence and a tile of logits are held at a time. A model against itself
    gives exactly 0. Waits for the engine: not for an event loop.

    Raises:
        ModelError: the two cannot be compared.
        UsageError: a sequence is too short, or does not fit one of the models.
        MeasureError: a value is NaN or infinite (the place is named), or memory ran out.
    """
    require_comparable(reference.model, candidate)
    for ids in sequences:
        require_scorable(reference.model, ids)
        require_scorable(candidate, ids)
    rows = []
    for ids in sequences:
        rows.append(engine.call(partial(_compare, reference, candidate, ids)).result())
        advance(len(ids))
    return tuple(rows)


def require_scorable(model: LoadedModel, ids: Sequence[int]) -> None:
    """Refuse a sequence of which ``model`` can score no position.

    Raises:
        UsageError: it has fewer than two tokens, is longer than the context, or holds an unknown ID.
    """
    require_usable(model, ids)
    if len(ids) < 2:
        raise UsageError(
            "the sequence has a single token, which nothing precedes",
            where=str(model.name),
            remedy="Give at least two tokens",
        )


@torch.inference_mode()
def states_divergence(
    reference: LoadedModel, p_states: Tensor, candidate: LoadedModel, q_states: Tensor, ids: Sequence[int]
) -> RowDivergence:
    """Return the divergence at each token of ``ids`` but the first, from states [tokens - 1, hidden].

    Raises:
        MeasureError: logits are not numbers, a divergence is infinite, or memory ran out for a single row.
    """
    try:
        rows = tiled_divergence(
            lambda start, stop: reference.head(p_states[start:stop]),
            lambda start, stop: candidate.head(q_states[start:stop]),
            torch.tensor(ids[1:], device=p_states.device),
            vocabulary=reference.vocabulary_size,
        )
    except MeasureError as error:
        where = f"{reference.name} against {candidate.name}"
        raise MeasureError(error.message, where=where, remedy=error.remedy) from error
    _require_finite_rows(rows, candidate)
    return rows


def _compare(reference: ReferenceStates, candidate: LoadedModel, ids: Sequence[int]) -> RowDivergence:
    q_states = batch_states(candidate, [ids])[0]
    return states_divergence(reference.model, reference(ids), candidate, q_states, ids)


def _require_finite_rows(rows: RowDivergence, candidate: LoadedModel) -> None:
    for values in (rows.kl, rows.reverse_kl, rows.logprob_p, rows.logprob_q):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise MeasureError(
                f"a probability of exactly zero makes the divergence infinite at position {bad[0]}",
                where=str(candidate.name),
                remedy="Its head masks tokens with -inf; compare models whose whole vocabulary can be drawn",
            )
