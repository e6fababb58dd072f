"""Checkpoints that torchao quantized and ``save_pretrained`` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from reference_engine.models.activations import InputRounding
from reference_engine.models.dense_checkpoint import DenseCheckpoint
from reference_engine.models.quiet import quiet_torchao
from reference_engine.models.shards import read_shards
from ringtrue.errors import ModelError

_ACTIVATIONS = ("act_quant_kwargs", "activation_quantization")
_BY_TOKEN = {"QuantizeTensorToFloat8Kwargs": "fp8", "QuantizeTensorToInt8Kwargs": "int8"}


def read_torchao(files: list[Path], where: str) -> DenseCheckpoint:
    """Return the dense tensors, by torchao's own ``dequantize``, and the roundings of inputs.

    Raises:
        ModelError: a tensor is missing, has a layout that only a GPU kernel can
            read, or is served with activations rounded in a way that is not reproduced.
    """
    with quiet_torchao():
        from torchao.prototype.safetensors.safetensors_support import (  # noqa: PLC0415
            unflatten_tensor_state_dict,
        )

    tensors, metadata = read_shards(files)
    try:
        held, rest = unflatten_tensor_state_dict(tensors, metadata)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(
            f"the files do not hold what torchao wrote: {error}",
            where=where,
            remedy="Save the checkpoint again with this version of torchao",
        ) from error
    if rest:
        raise ModelError(
            "the checkpoint lacks parts of a tensor", where=f"{where}: {min(rest)}", remedy="Fetch it again"
        )
    roundings = {}
    for name, tensor in held.items():
        rounding = _input_rounding(tensor, f"{where}: {name}")
        if rounding is not None:
            roundings[name.removesuffix(".weight")] = rounding
    return DenseCheckpoint({name: _dense(t, f"{where}: {name}") for name, t in held.items()}, roundings)


def _dense(tensor: Any, where: str) -> Tensor:
    if type(tensor) is Tensor:
        return tensor
    kind = type(tensor).__name__
    if not hasattr(tensor, "dequantize"):
        raise ModelError(
            f"the layout {kind} can only be read by a GPU kernel",
            where=where,
            remedy="Save the model with a plain layout, or name the unquantized model with a variant",
        )
    dense: Tensor = tensor.dequantize()
    return dense.detach().float()


def _input_rounding(tensor: Any, where: str) -> InputRounding | None:
    if getattr(tensor, "act_pre_scale", None) is not None:
        raise ModelError(
            "the checkpoint scales activations first (AWQ, SmoothQuant), which is not reproduced",
            where=where,
            remedy="Name the unquantized model with a variant such as @int4:group=128",
        )
    asked = next((a for name in _ACTIVATIONS if (a := getattr(tensor, name, None)) is not None), None)
    if asked is None:
        return None
    kind = _BY_TOKEN.get(type(asked).__name__)
    granularity = type(getattr(asked, "granularity", None)).__name__
    mapping = getattr(getattr(asked, "mapping_type", None), "name", "SYMMETRIC")
    plain = granularity == "PerRow" and mapping == "SYMMETRIC" and not getattr(asked, "reduce_range", False)
    if kind is None or not plain:
        raise ModelError(
            f"the checkpoint rounds activations as {asked}, which is not reproduced",
            where=where,
            remedy="Activations can be symmetric fp8 or int8, dynamic by row",
        )
    return InputRounding(kind)
