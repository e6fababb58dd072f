"""Variants of one loaded model that share what is equal with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from reference_engine.models.activations import InputRounding, round_inputs
from reference_engine.models.gguf_types import head_type, round_to_gguf
from reference_engine.models.kinds import DEFAULT_GROUP, FLOATS, GGUF_TYPES, INTEGERS
from reference_engine.models.matrices import layer_matrices, require_matrices
from reference_engine.models.rounding import round_rows_to_float8, round_to_nearest
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from reference_engine.models.names import ModelName, Variant

TORCH_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


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
    return copied_with(network, {id(p): p.detach().to(dtype) for p in network.parameters()})


def rounded(exact: PreTrainedModel, like: PreTrainedModel, name: ModelName) -> PreTrainedModel:
    """Return a copy of ``like`` with the weights of its decoder layers rounded as ``name`` says.

    The rounding starts from ``exact``, the same model in float32. Everything
    that is not rounded (norms, routers, untouched layers, and but for GGUF
    types embeddings and head) is shared with ``like``, not copied.

    Raises:
        ModelError: most weights are in no matrices, so that the variant would
            not be one, or activations are to be rounded where that cannot be done.
    """
    width = exact.config.get_text_config().hidden_size
    layers, targets = decoder_layers(exact), decoder_layers(like)
    require_matrices(layers, width, str(name))
    replaced: dict[int, Tensor] = {}
    for index, (source, target) in enumerate(zip(layers, targets, strict=True)):
        variant = name.weights(index)
        if variant is None:
            continue
        pairs = zip(layer_matrices(source, width), layer_matrices(target, width), strict=True)
        for matrix, old in pairs:
            replaced[id(old.weight)] = matrix.rounded(_rounding(variant)).to(old.weight.dtype)
    whole = name.whole_weights
    if whole is not None and whole.kind in GGUF_TYPES:
        replaced |= _rounded_ends(exact, like, whole.kind)
    network = copied_with(like, replaced)
    for index, layer in enumerate(decoder_layers(network)):
        variant = name.weights(index)
        if variant is not None and variant.kind == "fp8-dynamic":
            for matrix in layer_matrices(layer, width):
                round_inputs(matrix.module, InputRounding("fp8"))
    return network


def _rounding(variant: Variant) -> Callable[[Tensor], Tensor]:
    if variant.kind in INTEGERS:
        group = variant.group or DEFAULT_GROUP
        return partial(round_to_nearest, bits=INTEGERS[variant.kind], group=group)
    if variant.kind in FLOATS:
        return round_rows_to_float8
    return partial(round_to_gguf, kind=variant.kind)


def _rounded_ends(exact: PreTrainedModel, like: PreTrainedModel, kind: str) -> dict[int, Tensor]:
    """The embedding and the head of a GGUF file; where they are one, it is held as the head is."""
    embedding, head = _ends(exact)
    old_embedding, old_head = _ends(like)
    replaced = {id(old_head): round_to_gguf(head.detach(), head_type(kind)).to(old_head.dtype)}
    if old_embedding is not old_head:
        replaced[id(old_embedding)] = round_to_gguf(embedding.detach(), kind).to(old_embedding.dtype)
    return replaced


def _ends(network: Any) -> tuple[Tensor, Tensor]:
    return network.get_input_embeddings().weight, network.get_output_embeddings().weight


def copied_with(network: PreTrainedModel, weights: Mapping[int, Tensor]) -> PreTrainedModel:
    """Return a copy of the modules with parameters replaced by the tensors under their identities.

    Parameters that ``weights`` does not name are shared, buffers are copied.
    ``deepcopy`` takes what its memo already holds, so tied parameters stay tied.
    """
    memo = {id(p): p for p in network.parameters()}
    memo |= {
        key: w if isinstance(w, nn.Parameter) else nn.Parameter(w, requires_grad=False)
        for key, w in weights.items()
    }
    return copy.deepcopy(network, memo)
