"""Checkpoints that were saved quantized, read as the dense weights that they stand for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from reference_engine.models.activations import InputRounding, round_inputs
from reference_engine.models.dense_checkpoint import DenseCheckpoint
from ringtrue.errors import ModelError

QUANTIZATION_KEYS = ("quantization_config", "compression_config")  # of config.json; the second is the older

_REMEDY = (
    "Checkpoints of compressed-tensors and torchao can be read; or name the unquantized model with a "
    "variant such as @int4:group=128, or a .gguf file"
)
_INSTALL = "Run: pip install 'ringtrue[checkpoints]'"


def quantization_config(folder: Path) -> dict[str, Any] | None:
    """Return how the checkpoint in ``folder`` says it is quantized, ``None`` if it is not.

    Raises:
        ModelError: ``config.json`` cannot be read.
    """
    file = folder / "config.json"
    try:
        config: dict[str, Any] = json.loads(file.read_text())
        return next((found for key in QUANTIZATION_KEYS if (found := config.get(key))), None)
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(
            "the configuration cannot be read", where=str(file), remedy="Fetch the file again"
        ) from error


def read_dense(files: list[Path], config: dict[str, Any], where: str) -> DenseCheckpoint:
    """Return what the quantized checkpoint in ``files`` stands for.

    Raises:
        ModelError: its method cannot be read, its library is not installed, or
            it asks for roundings of activations or cache that are not
            reproduced: then another model than the served one would be measured.
    """
    method = config.get("quant_method")
    try:
        if method == "compressed-tensors":
            from reference_engine.models.compressed_tensors_files import read_compressed  # noqa: PLC0415

            return read_compressed(files, config, where)
        if method == "torchao":
            from reference_engine.models.torchao_files import read_torchao  # noqa: PLC0415

            return read_torchao(files, where)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"reading this checkpoint needs the package {error.name}", where=where, remedy=_INSTALL
        ) from error
    raise ModelError(
        f"the checkpoint is quantized with {method}, which is not read", where=where, remedy=_REMEDY
    )


def round_module_inputs(network: nn.Module, roundings: Mapping[str, InputRounding], where: str) -> None:
    """Make the named modules of ``network`` round their inputs.

    An expert that transformers stacks into one module with others is found in
    that module.

    Raises:
        ModelError: a module is not there, or experts of one module differ in their rounding.
    """
    chosen: dict[str, InputRounding] = {}
    for name, rounding in roundings.items():
        module = _innermost(network, name)
        if chosen.setdefault(module, rounding) != rounding:
            raise ModelError(
                "the experts of one layer round their inputs differently, which is not reproduced",
                where=f"{where}: {module}",
                remedy=_REMEDY,
            )
    for name, rounding in chosen.items():
        round_inputs(network.get_submodule(name), rounding)


def _innermost(network: nn.Module, name: str) -> str:
    known = dict(network.named_modules())
    while name not in known:
        name = name.rpartition(".")[0]
    return name
