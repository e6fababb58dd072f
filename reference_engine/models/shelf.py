"""The models of one process, each loaded once."""

from __future__ import annotations

import torch

from reference_engine.models.loading import LoadedModel, load_base, load_variant
from reference_engine.models.names import ModelName


class ModelShelf:
    """Loads on first use and keeps; variants of one base share the weights they have in common."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._models: dict[ModelName, LoadedModel] = {}

    def get(self, name: ModelName) -> LoadedModel:
        """Return the model of that name.

        Raises:
            ModelError: it cannot be found, loaded or built.
        """
        name = name.canonical
        if name not in self._models:
            if name.is_base:
                model = load_base(name.base, self._device)
            else:
                model = load_variant(self.get(ModelName(name.base)), name, self.get)
            self._models[name] = model
        return self._models[name]
