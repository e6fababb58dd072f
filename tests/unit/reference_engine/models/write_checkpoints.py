"""Write checkpoints quantized by the libraries themselves, and the logits that they compute.

    python write_checkpoints.py MODEL_FOLDER OUT_FOLDER

A process of its own: where a model was loaded by ringtrue, transformers believes that there is no torchao.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.quantization import (
    QuantizationArgs,
    QuantizationConfig,
    QuantizationScheme,
    QuantizationStatus,
    apply_quantization_config,
)
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import save_file
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
)
from torchao.quantization.granularity import PerGroup
from transformers import AutoModelForCausalLM, TorchAoConfig

IDS = torch.tensor([[72, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100]])


def _args(**options: Any) -> QuantizationArgs:
    return QuantizationArgs(**options)


_TOKEN_INT8 = _args(num_bits=8, type="int", strategy="token", dynamic=True)
_TOKEN_FP8 = _args(num_bits=8, type="float", strategy="token", dynamic=True)
_STATIC_FP8 = _args(num_bits=8, type="float", strategy="tensor", dynamic=False)
COMPRESSED = {
    "int4": (_args(num_bits=4, type="int", strategy="group", group_size=32), None),
    "int4-asymmetric": (
        _args(num_bits=4, type="int", strategy="group", group_size=32, symmetric=False),
        None,
    ),
    "w8a8-int8": (_args(num_bits=8, type="int", strategy="channel"), _TOKEN_INT8),
    "w8a8-fp8": (_args(num_bits=8, type="float", strategy="channel"), _TOKEN_FP8),
    "w8a8-fp8-static": (_args(num_bits=8, type="float", strategy="tensor"), _STATIC_FP8),
}
TORCHAO: dict[str, Callable[[], Any]] = {
    "ao-int8": Int8WeightOnlyConfig,
    "ao-int4": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
    "ao-w8a8-int8": Int8DynamicActivationInt8WeightConfig,
}


def write_compressed(
    source: Path, out: Path, weights: QuantizationArgs, inputs: QuantizationArgs | None
) -> None:
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    scheme = QuantizationScheme(targets=["Linear"], weights=weights, input_activations=inputs)
    config = QuantizationConfig(
        config_groups={"group_0": scheme},
        ignore=["lm_head"],
        quantization_status=QuantizationStatus.FROZEN,
    )
    apply_quantization_config(model, config)
    for module in model.modules():
        if hasattr(module, "weight_scale"):
            calibrate(module, weights)
        if inputs is not None and not inputs.dynamic and hasattr(module, "input_scale"):
            module.input_scale.data.fill_(0.01)
    write_logits(model, out)  # before packing: transformers cannot load packed zero points back
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(out)
    compressor.update_config(str(out))


def calibrate(module: Any, args: QuantizationArgs) -> None:
    """Set scales by the smallest and largest weight of each group, as any calibration begins."""
    weight = module.weight.data
    width = args.group_size or weight.shape[1]
    grouped = weight.reshape(weight.shape[0], -1, width)
    low, high = grouped.amin(-1), grouped.amax(-1)
    if args.strategy == "tensor":
        low, high = low.amin().reshape(1), high.amax().reshape(1)
    scale, zero = calculate_qparams(low, high, args)
    module.weight_scale.data.copy_(scale.reshape(module.weight_scale.shape))
    if hasattr(module, "weight_zero_point"):
        module.weight_zero_point.data.copy_(zero.reshape(module.weight_zero_point.shape))


def write_torchao(source: Path, out: Path, config: Any) -> None:
    model = AutoModelForCausalLM.from_pretrained(
        source, dtype=torch.float32, quantization_config=TorchAoConfig(config)
    )
    model.save_pretrained(out)
    write_logits(model, out)


def write_logits(model: Any, out: Path) -> None:
    with torch.inference_mode():
        save_file({"logits": model(IDS).logits.float()}, out.with_suffix(".logits"))


def main() -> None:
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    for name, (weights, inputs) in COMPRESSED.items():
        write_compressed(source, out / name, weights, inputs)
    for name, config in TORCHAO.items():
        write_torchao(source, out / name, config())
    for name in (*COMPRESSED, *TORCHAO):
        for file in source.glob("*token*"):
            (out / name / file.name).write_bytes(file.read_bytes())


if __name__ == "__main__":
    main()
