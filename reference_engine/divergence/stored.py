"""The reference's states read from a baseline instead of computed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from reference_engine.baselines.reading import Baseline, require_same_tokens
from reference_engine.models.loading import LoadedModel
from ringtrue.errors import ModelError, UsageError


class StoredStates:
    """The states of a baseline; the model that they came from turns them into distributions.

    Serves a comparison as ``states.ExactStates`` does, for the sequences of
    the baseline alone, and spares the reference's forward passes. Not for
    several threads at once.
    """

    def __init__(self, baseline: Baseline, model: LoadedModel) -> None:
        """Read the token IDs of all sequences.

        Raises:
            UsageError: the baseline holds no states.
            ModelError: ``model`` is not the one it was built with.
            StoreError: a shard is missing or damaged.
        """
        where = f"baseline {baseline.id[:12]}"
        request = baseline.manifest.request
        if request.states is None:
            raise UsageError(
                "the baseline holds no hidden states, and so no whole distributions",
                where=where,
                remedy="Build it with --states",
            )
        require_same_tokens(baseline, model)
        if model.weights_hash != request.model.weights:
            raise ModelError(
                f"it was built with other weights than those of {model.name}",
                where=f"{where} of {request.model.name}",
                remedy=f"Name {request.model.name} as the reference, or build the baseline anew",
            )
        self._model = model
        self._baseline = baseline
        self._indices = {tuple(kept.token_ids.tolist()): kept.index for kept in baseline.sequences()}

    @property
    def model(self) -> LoadedModel:
        """The reference."""
        return self._model

    @property
    def sequences(self) -> list[tuple[int, ...]]:
        """The token IDs of each different sequence, in the baseline's order."""
        return list(self._indices)

    def __call__(self, ids: Sequence[int]) -> Tensor:
        """Return the stored states [tokens - 1, hidden], in the model's dtype and on its device.

        Raises:
            UsageError: the baseline holds no such sequence.
            StoreError: a shard is missing or damaged.
        """
        index = self._indices.get(tuple(ids))
        if index is None:
            raise UsageError(
                f"it holds no sequence of these {len(ids)} tokens", where=f"baseline {self._baseline.id[:12]}"
            )
        states = next(self._baseline.sequences([index])).scores.states
        return torch.tensor(states).to(self._model.device, self._model.network.dtype)
