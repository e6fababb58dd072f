"""Variants of one loaded model that share what is equal with it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import nn

from reference_engine.models.rounding import round_to_nearest
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from reference_engine.models.names import ModelName

TORCH_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_LEAST_LINEAR_SHARE = 0.9


def decoder_layers(network: PreTrainedModel) -> nn.ModuleList:
    """Return the decoder layers, first to last.

    Raises:
        ModelError: the architecture keeps them in no one list.
    """
    count = network.config.get_text_config().num_hidden_layers
    for module in network.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise ModelError("the model keeps its decoder layers in no list", where=type(network).__name__)


def cast(network: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """Return a copy of ``network`` that holds and computes in ``dtype``.

    Buffers keep their dtype: rotary frequencies stay float32, as they do in
    every serving engine.
    """
    return _copy_with(network, {id(p): p.detach().to(dtype) for p in network.parameters()})


def rounded(exact: PreTrainedModel, like: PreTrainedModel, name: ModelName) -> PreTrainedModel:
    """Return a copy of ``like`` with the linear weights of its decoder layers rounded as ``name`` says.

    The rounding starts from ``exact``, the same model in float32. Everything
    that is not rounded (embeddings, norms, the head, untouched layers) is
    shared with ``like``, not copied.

    Raises:
        ModelError: ``name`` names a layer that is not there, or most weights
            are not in linear layers, so that the variant would not be one.
    """
    layers = decoder_layers(exact)
    missing = sorted(layer for layer in name.layers if layer >= len(layers))
    if missing:
        raise ModelError(
            f"the model has no layer {missing[0]}",
            where=str(name),
            remedy=f"Layers count from 0 to {len(layers) - 1}",
        )
    _require_linear(layers, name)
    replaced = {}
    for index, (source, target) in enumerate(zip(layers, decoder_layers(like), strict=True)):
        bits = name.bits(index)
        if bits is not None:
            for weight, old in zip(_linear_weights(source), _linear_weights(target), strict=True):
                replaced[id(old)] = round_to_nearest(weight.detach(), bits).to(old.dtype)
    return _copy_with(like, {id(p): replaced.get(id(p), p) for p in like.parameters()})


def _copy_with(network: PreTrainedModel, weights: dict[int, torch.Tensor]) -> PreTrainedModel:
    """Deep-copy the modules with each parameter replaced by the tensor under its identity.

    ``deepcopy`` takes what its memo already holds, so tied parameters stay tied.
    """
    memo = {
        key: w if isinstance(w, nn.Parameter) else nn.Parameter(w, requires_grad=False)
        for key, w in weights.items()
    }
    return copy.deepcopy(network, memo)


def _linear_weights(layer: nn.Module) -> list[torch.Tensor]:
    return [module.weight for module in layer.modules() if isinstance(module, nn.Linear)]


def _require_linear(layers: nn.ModuleList, name: ModelName) -> None:
    linear = sum(w.numel() for layer in layers for w in _linear_weights(layer))
    share = linear / sum(p.numel() for p in layers.parameters())
    if share < _LEAST_LINEAR_SHARE:
        raise ModelError(
            f"only {share:.0%} of the layers' weights are in linear layers, the rest cannot be rounded",
            where=str(name),
            remedy="Use a dtype variant for this architecture",
        )
