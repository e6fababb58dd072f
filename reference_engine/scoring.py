"""Exact log-probabilities: of the next token, and at every prompt position.

A single unpadded call does the same operations on the same shapes as a plain
transformers call and equals it bit for bit. Padded, chunked and batched calls
differ from it by rounding only, within 2e-4 nats in float32 (docs/methods.md,
"Hygiene").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Cache

from reference_engine.corruption import corrupted
from reference_engine.models.loading import LoadedModel

_LONGEST_CHUNK = 8_192  # tokens of a row in one pass; activations grow with it
_TILE_ELEMENTS = 2**26  # logits held at once: 256 MiB in float32


@dataclass(frozen=True, slots=True)
class PromptScores:
    """What the model thought of each token of one prompt but the first, which nothing precedes.

    For a prompt of n tokens: ``logprobs`` [n-1] (nats) and ``ranks`` [n-1]
    (1 is the most likely) of the tokens that stand there, ``top_ids`` and
    ``top_logprobs`` [n-1, k] of the k most likely ones, best first.
    """

    logprobs: NDArray[np.float32]
    ranks: NDArray[np.int64]
    top_ids: NDArray[np.int64]
    top_logprobs: NDArray[np.float32]

    def alternatives(self, k: int) -> list[list[tuple[int, float]]]:
        """Return, for each scored token, the ``k`` likeliest in its place with their logprobs."""
        ids, values = self.top_ids[:, :k].tolist(), self.top_logprobs[:, :k].tolist()
        return [list(zip(*position, strict=True)) for position in zip(ids, values, strict=True)]


def new_cache(model: LoadedModel) -> Cache:
    """Return an empty key-value cache for one call sequence."""
    return model.new_cache()


def hidden_states(
    model: LoadedModel,
    ids: Tensor,
    *,
    splits: Sequence[int] = (),
    beyond: Sequence[int | None] = (None,),
    cache: Cache | None = None,
) -> Tensor:
    """Return the states below the head, [batch, tokens, hidden], of ``ids`` [batch, tokens].

    The prefill is cut at the positions in ``splits`` and into chunks of at
    most 8,192 tokens. ``cache`` holds what went before and is extended.
    ``beyond`` is the fault of ``corruption.corrupted``.
    """
    width = ids.shape[1]
    cuts = sorted({0, width, *splits, *range(_LONGEST_CHUNK, width, _LONGEST_CHUNK)})
    if cache is None and (len(cuts) > 2 or model.needs_cache):
        cache = new_cache(model)
    chunks = []
    for start, stop in pairwise(cuts):
        offset = cache.get_seq_length() if cache is not None else 0
        with corrupted(model.layers, beyond, offset):
            output = model.body(ids[:, start:stop], cache=cache, use_cache=cache is not None)
        chunks.append(output.last_hidden_state)
    return chunks[0] if len(chunks) == 1 else torch.cat(chunks, dim=1)


@torch.inference_mode()
def next_token_logprobs(
    model: LoadedModel,
    sequences: Sequence[Sequence[int]],
    *,
    splits: Sequence[int] = (),
    beyond: Sequence[int | None] | None = None,
    riders: Sequence[tuple[int, int]] = (),
) -> Tensor:
    """Return float32 logprobs [sequences + riders, vocabulary] of the token after each sequence.

    A rider is a prefix of a sequence: the sequence's index, and the prefix's
    length in tokens. Its row costs no pass of its own.

    Shorter sequences are padded on the right; causal attention keeps the
    padding out of every position that is read, so no mask is needed.
    """
    last = torch.tensor([len(sequence) - 1 for sequence in sequences], device=model.device)
    ids = torch.zeros((len(sequences), int(last.max()) + 1), dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
    hidden = hidden_states(
        model, ids.to(model.device), splits=splits, beyond=beyond or [None] * len(sequences)
    )
    places = [(row, len(sequence) - 1) for row, sequence in enumerate(sequences)]
    places += [(row, length - 1) for row, length in riders]
    rows, positions = torch.tensor(places, device=model.device).unbind(1)
    # Kept three-dimensional: the head then sees the shape a plain call gives it, and rounds alike.
    return last_logprobs(model, hidden[rows, positions].unsqueeze(1))


def last_logprobs(model: LoadedModel, hidden: Tensor) -> Tensor:
    """Return float32 logprobs [batch, vocabulary] after the last of ``hidden`` [batch, tokens, hidden]."""
    return torch.log_softmax(model.head(hidden[:, -1:])[:, -1].float(), dim=-1)


def prompt_scores(model: LoadedModel, ids: Sequence[int], hidden: Tensor, k: int) -> PromptScores:
    """Score a prompt from its hidden states [1, tokens, hidden], with the ``k`` likeliest tokens a position.

    Logits are computed in tiles of rows, so that memory does not grow with
    tokens x vocabulary.
    """
    rows = max(1, _TILE_ELEMENTS // model.vocabulary_size)
    parts = [
        _score_rows(model, ids[start + 1 : start + rows + 1], hidden[:, start : start + rows], k)
        for start in range(0, max(1, len(ids) - 1), rows)
    ]
    return PromptScores(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _score_rows(
    model: LoadedModel, targets: Sequence[int], hidden: Tensor, k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    # The head also runs on a last row without a target: its shape then equals the plain call's.
    logprobs = torch.log_softmax(model.head(hidden)[0].float(), dim=-1)[: len(targets)]
    wanted = torch.tensor(targets, dtype=torch.long, device=logprobs.device).unsqueeze(1)
    chosen = logprobs.gather(1, wanted)
    ranks = (logprobs > chosen).sum(dim=1) + 1
    top = logprobs.topk(k, dim=1)
    columns = (chosen.squeeze(1), ranks, top.indices, top.values)
    return tuple(column.cpu().numpy() for column in columns)  # type: ignore[return-value]  # four by construction
