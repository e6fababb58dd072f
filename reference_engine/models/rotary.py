"""Rotary embeddings turned by another base than the model was trained with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from reference_engine.models.variants import copied_with
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_FREQUENCIES = ("inv_freq", "original_inv_freq")


def with_rotary_base(network: PreTrainedModel, base: float, where: str) -> PreTrainedModel:
    """Return a copy of ``network`` whose rotary frequencies follow from ``base``; all weights are shared.

    transformers' own function of the architecture computes them. With the
    model's own base they are equal bit for bit.

    Raises:
        ModelError: the model has no rotary embeddings, or their frequencies
            do not follow from one plain base: they are scaled (yarn, llama3,
            linear, dynamic), or layers have different ones.
    """
    turned = copied_with(network, {})
    rotaries = _rotaries(turned)
    if not rotaries:
        raise ModelError(
            "the model has no rotary embeddings with one list of frequencies",
            where=where,
            remedy="rope:base= is for models with one plain rotary base, such as Llama and Qwen",
        )
    for rotary in rotaries:
        _require_plain(rotary, where)
    for rotary in rotaries:
        # Several may share one configuration: the base is set, not multiplied.
        rotary.config.rope_parameters["rope_theta"] = base
        frequencies = _frequencies(rotary)
        for name in _FREQUENCIES:
            if isinstance(held := getattr(rotary, name, None), Tensor):
                held.copy_(frequencies)
    return turned


def _rotaries(network: PreTrainedModel) -> list[Any]:
    return [
        module
        for module in network.modules()
        if isinstance(getattr(module, "inv_freq", None), Tensor)
        and hasattr(module, "compute_default_rope_parameters")
    ]


def _require_plain(rotary: Any, where: str) -> None:
    parameters = getattr(rotary.config, "rope_parameters", None)
    plain = isinstance(parameters, dict) and "rope_theta" in parameters and rotary.rope_type == "default"
    # The proof that the base is all they depend on: its own gives them back.
    if not plain or not torch.equal(_frequencies(rotary), rotary.inv_freq.cpu()):
        raise ModelError(
            f"the model's rotary frequencies do not follow from one plain base ({rotary.rope_type})",
            where=where,
            remedy="Another base would change more than the base: take a model without rope scaling",
        )


def _frequencies(rotary: Any) -> Tensor:
    with torch.device("cpu"):  # where a model is loaded, whatever device it moves to afterwards
        frequencies: Tensor = rotary.compute_default_rope_parameters(rotary.config)[0]
    return frequencies
