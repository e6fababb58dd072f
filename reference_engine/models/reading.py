"""From a model's files to a network and a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from reference_engine.models.checkpoints import (
    QUANTIZATION_KEYS,
    quantization_config,
    read_dense,
    round_module_inputs,
)
from reference_engine.models.gguf_once import read_once
from reference_engine.models.shards import shard_files
from reference_engine.models.sources import Source
from reference_engine.tokenizers.opening import read_tokenizer
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def read_model(source: Source, base: str) -> tuple[PreTrainedModel, Any]:
    """Return the network in float32 and the tokenizer.

    A checkpoint that was saved quantized gives the dense weights it stands for.

    Raises:
        ModelError: a file is missing or damaged, weights and configuration do
            not belong together, or as ``checkpoints.read_dense``.
        OSError, ValueError, ImportError, LookupError, RuntimeError, struct.error:
            what the libraries raise for anything else that is wrong.
    """
    if source.gguf_file is not None:
        with read_once():
            options: dict[str, Any] = {"gguf_file": source.gguf_file, "local_files_only": True}
            network = _whole(AutoModelForCausalLM, base, source.folder, **options)
        return network, read_tokenizer(source.folder / source.gguf_file)
    files = shard_files(source.folder)
    quantized = quantization_config(source.folder)
    if quantized is None:
        network = _whole(AutoModelForCausalLM, base, source.folder, local_files_only=True)
    else:
        network = _from_quantized(source, files, quantized, base)
    return network, read_tokenizer(source.folder)


def _from_quantized(
    source: Source, files: list[Path], quantized: dict[str, Any], base: str
) -> PreTrainedModel:
    checkpoint = read_dense(files, quantized, base)
    config = AutoConfig.from_pretrained(source.folder, local_files_only=True)
    for key in QUANTIZATION_KEYS:  # the weights are dense by now
        if hasattr(config, key):
            delattr(config, key)
    auto: Any = AutoModelForCausalLM
    with torch.device("meta"):
        architecture = type(auto.from_config(config))
    network = _whole(architecture, base, None, config=config, state_dict=checkpoint.tensors, complete=True)
    round_module_inputs(network, checkpoint.input_roundings, base)
    return network


def _whole(
    architecture: Any, base: str, folder: Path | None, *, complete: bool = False, **options: Any
) -> PreTrainedModel:
    """Load in float32 and check that no weight was left to chance, nor, with ``complete``, left over."""
    network: PreTrainedModel
    network, report = architecture.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True, **options
    )
    wrong = [("lacks", report["missing_keys"]), ("has the wrong shape for", report["mismatched_keys"])]
    if complete:
        wrong.append(("does not know where to put", report["unexpected_keys"]))
    for what, keys in wrong:
        if keys:
            raise ModelError(
                f"the checkpoint {what} {sorted(keys)[0]} (and {len(keys) - 1} more)",
                where=base,
                remedy="The weights do not belong to this config.json; fetch both again",
            )
    return network
