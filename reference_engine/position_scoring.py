"""Exact scores of every token of a sequence, from its hidden states.

Logits are computed in tiles of rows, so that memory does not grow with tokens
x vocabulary; what is read from a tile is read in blocks that stay in the
processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reference_engine.models.loading import LoadedModel
from reference_engine.nonfinite import require_finite
from reference_engine.position_scores import PositionScores

TILE_ELEMENTS = 2**26  # logits held at once: 256 MiB in float32
_BLOCK_ELEMENTS = 2**19


@torch.inference_mode()
def token_logprobs(model: LoadedModel, ids: Sequence[int], hidden: Tensor) -> NDArray[np.float32]:
    """Return the logprobs [n-1] (nats) of all n tokens but the first, from states ``hidden`` [1, n, hidden].

    The cheapest answer to what the model thought of a text: hardly more than
    the forward pass itself.
    """
    targets = torch.tensor(ids, device=hidden.device)
    logprobs = torch.empty(len(ids) - 1, device=hidden.device)
    for start, logits in _tiles(model, hidden[:, :-1]):
        for first, block in _blocks(logits):
            rows = slice(start + first, start + first + block.shape[0])
            wanted = targets[1:][rows].unsqueeze(1)
            logprobs[rows] = torch.log_softmax(block.float(), dim=-1).gather(1, wanted)[:, 0]
    return logprobs.cpu().numpy()


@torch.inference_mode()
def position_blocks(
    model: LoadedModel, ids: Sequence[int], hidden: Tensor, *, k: int, states: bool, rows_per_block: int
) -> Iterator[PositionScores]:
    """Yield the scores of all n tokens but the first, ``rows_per_block`` positions at a time.

    ``hidden`` are the states [1, n, hidden] of ``ids``. Tail mass and entropy
    are summed in float64.

    Raises:
        MeasureError: a state or a logit is NaN or infinite; layer, module and position are named.
    """
    require_finite(model, ids, hidden)
    targets = torch.tensor(ids[1:], device=hidden.device)
    for start in range(0, len(ids) - 1, rows_per_block):
        rows = slice(start, min(start + rows_per_block, len(ids) - 1))
        yield _score(model, ids, targets[rows], hidden[:, rows], k=k, states=states)


def _score(
    model: LoadedModel, ids: Sequence[int], targets: Tensor, hidden: Tensor, *, k: int, states: bool
) -> PositionScores:
    parts = []
    for start, logits in _tiles(model, hidden):
        for first, block in _blocks(logits):
            if not bool(torch.isfinite(block.amax(dim=1)).all()):
                require_finite(model, ids, block.fill_(torch.nan))
            rows = slice(start + first, start + first + block.shape[0])
            parts.append(_score_rows(torch.log_softmax(block.float(), dim=-1), targets[rows], k))
    kept = hidden[0].float().cpu().numpy() if states else None
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    logprobs, ranks, top_ids, top_logprobs, tail, entropy = columns
    return PositionScores(logprobs, ranks, top_ids, top_logprobs, tail, entropy, kept)


def _tiles(model: LoadedModel, hidden: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield tiles of logits [rows, vocabulary] of ``hidden`` [1, rows, hidden], with their first row."""
    rows = max(1, TILE_ELEMENTS // model.vocabulary_size)
    for start in range(0, hidden.shape[1], rows):
        yield start, model.head(hidden[:, start : start + rows])[0]


def _blocks(logits: Tensor) -> Iterator[tuple[int, Tensor]]:
    rows = max(1, _BLOCK_ELEMENTS // logits.shape[1])
    for first in range(0, logits.shape[0], rows):
        yield first, logits[first : first + rows]


def _score_rows(logprobs: Tensor, targets: Tensor, k: int) -> tuple[NDArray[np.generic], ...]:
    chosen = logprobs.gather(1, targets.unsqueeze(1))
    ranks = (logprobs > chosen).sum(dim=1) + 1
    top_ids = _best(logprobs, k)
    probabilities = logprobs.double().exp_()
    entropy = -torch.where(probabilities > 0, probabilities * logprobs, 0.0).sum(dim=1)
    tail = probabilities.scatter_(1, top_ids, 0.0).sum(dim=1)
    return (
        chosen[:, 0].cpu().numpy(),
        ranks.cpu().numpy(),
        top_ids.to(torch.int32).cpu().numpy(),
        logprobs.gather(1, top_ids).cpu().numpy(),
        tail.cpu().numpy(),
        entropy.cpu().numpy(),
    )


def _best(logprobs: Tensor, k: int) -> Tensor:
    """Return the IDs [rows, k] of the k likeliest tokens, best first, ties by lower ID."""
    values, found = logprobs.topk(k, dim=1)
    # topk keeps ties in no order, and may keep any of those at the border.
    by_id = found.argsort(dim=1)
    by_value = values.gather(1, by_id).argsort(dim=1, descending=True, stable=True)
    best = found.gather(1, by_id).gather(1, by_value)
    border = values[:, -1:]
    tied = (logprobs >= border).sum(dim=1) > k
    if bool(tied.any()):
        best[tied] = logprobs[tied].argsort(dim=1, descending=True, stable=True)[:, :k]
    return best
