"""Checkpoints of compressed-tensors, which vLLM's own quantizer writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.format import infer_module_format
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from compressed_tensors.utils.match import is_match
from torch import Tensor, nn

from reference_engine.models.activations import InputRounding
from reference_engine.models.dense_checkpoint import DenseCheckpoint
from reference_engine.models.shards import read_shards
from ringtrue.errors import ModelError

_SCALE = "weight_scale"
_SERIALIZED = (
    "weight",
    "weight_packed",
    _SCALE,
    "weight_zero_point",
    "weight_g_idx",
    "weight_shape",
    "weight_global_scale",
    "input_scale",
    "input_zero_point",
    "input_global_scale",
)
_KINDS = {"float": "fp8", "int": "int8"}


def read_compressed(files: list[Path], config: dict[str, Any], where: str) -> DenseCheckpoint:
    """Return the dense tensors, by the library's own decompression, and the roundings of inputs.

    Raises:
        ModelError: the checkpoint rounds activations or its cache in a way that
            is not reproduced, transforms its weights, or has a tensor no scheme covers.
    """
    parsed = _parse(config, where)
    tensors, _ = read_shards(files)
    modules = sorted(name.removesuffix(f".{_SCALE}") for name in tensors if name.endswith(f".{_SCALE}"))
    roundings: dict[str, InputRounding] = {}
    for module in modules:
        scheme = _scheme_of(module, parsed, where)
        held = {
            name: tensors.pop(f"{module}.{name}") for name in _SERIALIZED if f"{module}.{name}" in tensors
        }
        try:
            tensors[f"{module}.weight"] = _decompress(held, scheme, parsed.format)
        except (KeyError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"the parts of a weight do not fit together ({type(error).__name__}: {error})",
                where=f"{where}: {module}",
                remedy="Fetch the checkpoint again, or write it anew",
            ) from error
        if scheme.input_activations is not None:
            place = f"{where}: {module}"
            roundings[module] = _input_rounding(scheme.input_activations, held.get("input_scale"), place)
    return DenseCheckpoint(tensors, roundings)


def _parse(config: dict[str, Any], where: str) -> QuantizationConfig:
    for key, what in (("kv_cache_scheme", "its key-value cache"), ("transform_config", "rotated weights")):
        if config.get(key):
            raise ModelError(
                f"the checkpoint asks for {what} ({key}), which is not reproduced",
                where=where,
                remedy="Compare a checkpoint without it; the variants kv-fp8 and kv-int8 round the cache",
            )
    try:
        return QuantizationConfig.model_validate(config)
    except ValueError as error:
        raise ModelError(f"the quantization_config cannot be read: {error}", where=where) from error


def _scheme_of(module: str, config: QuantizationConfig, where: str) -> QuantizationScheme:
    # Whatever the architecture, a module in the checkpoint that has a scale was a linear layer.
    linear = nn.Linear(1, 1, device="meta")
    for scheme in config.config_groups.values():
        if is_match(module, linear, scheme.targets):
            return scheme
    raise ModelError("no group of the quantization_config covers this module", where=f"{where}: {module}")


def _decompress(held: dict[str, Tensor], scheme: QuantizationScheme, declared: str) -> Tensor:
    kind = scheme.format or (
        infer_module_format(nn.Linear, scheme) if declared == "mixed-precision" else declared
    )
    compressor = BaseCompressor.get_value_from_registry(getattr(kind, "value", kind))
    # The result has the dtype of the scale. A product rounded to bfloat16 is what no engine computes with.
    wide = {name: t.float() if name.endswith("_scale") else t for name, t in held.items()}
    weight: Tensor = compressor.decompress(wide, scheme)["weight"]
    return weight.detach().float()


def _input_rounding(args: QuantizationArgs, scale: Tensor | None, where: str) -> InputRounding:
    strategy = str(getattr(args.strategy, "value", args.strategy))
    if args.num_bits == 8 and args.symmetric:
        if args.dynamic is True and strategy == "token":
            return InputRounding(_KINDS[str(getattr(args.type, "value", args.type))])
        if args.dynamic is False and strategy == "tensor" and scale is not None:
            kind = _KINDS[str(getattr(args.type, "value", args.type))]
            return InputRounding(kind, float(scale.to(torch.float32).reshape(())))
    raise ModelError(
        f"the checkpoint rounds activations to {args.num_bits} bits by {strategy} "
        f"(dynamic: {args.dynamic}, symmetric: {args.symmetric}), which is not reproduced",
        where=where,
        remedy="Activations can be symmetric fp8 or int8, dynamic by token or static by tensor",
    )
