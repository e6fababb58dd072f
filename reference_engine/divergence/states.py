"""The states below the head of whole sequences, from which a divergence is computed row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from reference_engine.models.loading import LoadedModel
from reference_engine.models.memory import is_out_of_memory
from reference_engine.nonfinite import require_finite
from reference_engine.scoring import hidden_states
from ringtrue.errors import MeasureError

_REMEMBERED_BYTES = 2**30


class ReferenceStates(Protocol):
    """Whoever knows the reference's states: it computes them, or reads them from a baseline."""

    @property
    def model(self) -> LoadedModel:
        """The reference, whose head turns states into distributions."""

    def __call__(self, ids: Sequence[int]) -> Tensor:
        """Return the states [tokens - 1, hidden] at all but the last of ``ids``, on the model's device.

        Only the engine thread calls it.

        Raises:
            UsageError, StoreError: a baseline does not hold them, or is damaged.
            MeasureError: a state is NaN or infinite (the place is named), or memory ran out.
        """


class ExactStates:
    """The states of one model, a single unpadded pass for each sequence.

    Sequences are remembered up to 1 GiB of states in host memory, so that
    several comparisons with one reference run it once; what does not fit is
    computed again.
    """

    def __init__(self, model: LoadedModel, *, most_bytes: int = _REMEMBERED_BYTES) -> None:
        self._model = model
        self._room = most_bytes
        self._kept: dict[tuple[int, ...], Tensor] = {}

    @property
    def model(self) -> LoadedModel:
        """The reference."""
        return self._model

    def __call__(self, ids: Sequence[int]) -> Tensor:
        """Return the states [tokens - 1, hidden] of one pass over ``ids``, less that of the last token.

        Raises:
            MeasureError: a state is NaN or infinite (the place is named), or memory ran out.
        """
        key = tuple(ids)
        if key not in self._kept:
            states = batch_states(self._model, [key])[0]
            size = states.numel() * states.element_size()
            if size > self._room:
                return states
            self._room -= size
            self._kept[key] = states.cpu()
        return self._kept[key].to(self._model.device)


@torch.inference_mode()
def batch_states(
    model: LoadedModel, sequences: Sequence[Sequence[int]], *, splits: Sequence[int] = ()
) -> list[Tensor]:
    """Return the states [tokens - 1, hidden] of each sequence, all computed in one padded pass.

    The prefill is cut at ``splits``. Shorter sequences are padded on the
    right, where causal attention keeps the padding out of what is read.

    Raises:
        MeasureError: a state is NaN or infinite (the place is named), or memory ran out.
    """
    width = max(len(ids) for ids in sequences)
    padded = torch.zeros((len(sequences), width), dtype=torch.long)
    for row, ids in enumerate(sequences):
        padded[row, : len(ids)] = torch.tensor(ids)
    try:
        hidden = hidden_states(model, padded.to(model.device), splits=splits, beyond=[None] * len(sequences))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        count = f"{len(sequences)} sequences" if len(sequences) > 1 else "a sequence"
        raise MeasureError(
            f"memory ran out in the forward pass of {count} of {width:,} tokens",
            where=str(model.name),
            remedy="Use shorter sequences, free memory on the device, or choose another with --device",
        ) from error
    parts = [hidden[row, : len(ids) - 1] for row, ids in enumerate(sequences)]
    for ids, part in zip(sequences, parts, strict=True):
        require_finite(model, ids, part)
    return parts
