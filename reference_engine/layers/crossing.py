"""Passes of one sequence in which parts of the reference are the candidate's.

What lies before the first exchanged layer is not computed again: the outputs
of every layer are recorded once for each of the two models, and a pass begins
at the recorded output before the first layer that differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from reference_engine.layers.hybrid import Recalled, converted, exchanged, fitted
from reference_engine.models.caches import new_cache
from reference_engine.models.loading import LoadedModel
from reference_engine.nonfinite import require_finite
from reference_engine.scoring import hidden_states


@dataclass(frozen=True, slots=True)
class Recording:
    """One model's own pass over a sequence of n tokens.

    ``outputs`` holds what each decoder layer returned, ``final`` the post-norm
    states [1, n, hidden].
    """

    outputs: tuple[Any, ...]
    final: Tensor

    def states(self, layer: int) -> Tensor:
        """Return the hidden states [1, n, hidden] after ``layer``."""
        return first_tensor(self.outputs[layer])


def first_tensor(output: Any) -> Tensor:
    """Return the hidden states of a layer's output, which may be a tuple that begins with them."""
    tensor: Tensor = output[0] if isinstance(output, tuple | list) else output
    return tensor


def record(model: LoadedModel, ids: Tensor) -> Recording:
    """Run ``ids`` [1, n] and keep every layer's output.

    Raises:
        MeasureError: some value is NaN or infinite; layer, module and position are named.
    """
    outputs: list[Any] = []

    def keep(_: nn.Module, __: Any, output: Any) -> None:
        outputs.append(output)

    with ExitStack() as hooks:
        for layer in model.layers:
            hooks.callback(layer.register_forward_hook(keep).remove)
        final = hidden_states(model, ids)
    require_finite(model, ids[0].tolist(), final)
    return Recording(tuple(outputs), final)


class Crossing:
    """The reference, the candidate, and one sequence ``ids`` [1, n].

    Every method returns final states [1, n, hidden], which the reference's
    head reads. Both models must be comparable (``models.comparable``) and on
    one device.
    """

    def __init__(self, reference: LoadedModel, candidate: LoadedModel, ids: Tensor) -> None:
        self.reference, self.candidate, self.ids = reference, candidate, ids
        self.truth = record(reference, ids)
        self.other = record(candidate, ids)
        self._dtype = self.truth.final.dtype

    def control(self, layer: int) -> Tensor:
        """The reference begun anew at its own recorded state before ``layer``: must equal its own pass."""
        return self._from(layer, {})

    def swapped(self, layer: int) -> Tensor:
        """The reference with ``layer`` alone taken from the candidate."""
        module = fitted(self.candidate.layers[layer], self.reference.layers[layer])
        return self._from(layer, {layer: module}, candidates_cache=layer)

    def cumulative(self, layer: int) -> Tensor:
        """The candidate up to ``layer``, embedding included, then the reference."""
        reached = converted(self.other.outputs[layer], self._dtype)
        return self._run(layer + 1, reached, {})

    def swapped_module(self, layer: int, path: str) -> Tensor:
        """The reference with the one module at ``path`` inside ``layer`` taken from the candidate."""
        root = self.reference.layers[layer]
        module = fitted(self.candidate.layers[layer].get_submodule(path), root.get_submodule(path))
        with exchanged(root, {path: module}):
            return self._from(layer, {})

    def rounded_cache(self, layer: int) -> Tensor:
        """The reference with the candidate's rounding of keys and values in ``layer``."""
        return self._from(layer, {}, candidates_cache=layer)

    def swapped_outside(self, path: str) -> Tensor:
        """The reference with the module at ``path`` of its body, outside the layers, from the candidate."""
        body = self.reference.network.base_model
        module = fitted(self.candidate.network.base_model.get_submodule(path), body.get_submodule(path))
        with exchanged(body, {path: module}):
            return self._run(0, None, {})

    def _from(
        self, layer: int, others: Mapping[int, nn.Module], *, candidates_cache: int | None = None
    ) -> Tensor:
        before = self.truth.outputs[layer - 1] if layer else None
        return self._run(layer, before, others, candidates_cache=candidates_cache)

    def _run(
        self, start: int, before: Any, others: Mapping[int, nn.Module], *, candidates_cache: int | None = None
    ) -> Tensor:
        """Run the reference from layer ``start`` on, whose input is the output ``before`` of the layer below.

        ``candidates_cache`` is the layer whose keys and values are rounded as the candidate's.
        """
        layers = self.reference.layers
        places = {str(index): module for index, module in others.items()}
        for index in range(start):
            places[str(index)] = Recalled(layers[index], before if index == start - 1 else None)
        kinds = {index: self._cache_kind(index, candidates_cache) for index in range(len(layers))}
        rounded = {index: kind for index, kind in kinds.items() if kind is not None}
        cache = new_cache(self.reference.network.config, rounded) if rounded else None
        with exchanged(layers, places):
            return hidden_states(self.reference, self.ids, cache=cache)

    def _cache_kind(self, layer: int, candidates: int | None) -> str | None:
        model = self.candidate if layer == candidates else self.reference
        return model.name.cache(layer)


def differing_modules(reference: nn.Module, candidate: nn.Module) -> list[str]:
    """Return the paths inside ``reference`` of the modules whose own weights or buffers differ.

    Rotary frequencies are a buffer.
    """
    return [
        path
        for path, module in reference.named_modules()
        if path and _differs(module, candidate.get_submodule(path))
    ]


def _differs(module: nn.Module, other: nn.Module) -> bool:
    weights, others = _own_tensors(module), _own_tensors(other)
    return bool(weights) and (
        type(module) is not type(other)
        or any(not _same(weight, others[name]) for name, weight in weights.items())
    )


def _own_tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}


def _same(weight: Tensor, other: Tensor) -> bool:
    return weight is other or (weight.dtype == other.dtype and torch.equal(weight, other))
