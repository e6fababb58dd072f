"""The safetensors files of a checkpoint, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from ringtrue.errors import ModelError

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_REMEDY = "Fetch the file again, or write the checkpoint anew"


def shard_files(folder: Path) -> list[Path]:
    """Return the files that hold a checkpoint's weights, all of them there and whole.

    Raises:
        ModelError: the index is broken, or a file that it names is missing or
            damaged; the error names the file.
    """
    files = _named_files(folder)
    for file in files:
        if not file.is_file():
            raise ModelError(
                "a shard of the checkpoint is missing", where=str(file), remedy="Fetch the file again"
            )
        try:
            with safe_open(file, framework="pt"):
                pass  # opening checks the header and the length
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"the weights cannot be loaded, the file is damaged: {error}",
                where=str(file),
                remedy=_REMEDY,
            ) from error
    return files


def read_shards(files: list[Path]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return every tensor of the files by its name, and their metadata together."""
    tensors: dict[str, Tensor] = {}
    metadata: dict[str, str] = {}
    for file in files:
        with safe_open(file, framework="pt") as shard:
            metadata |= shard.metadata() or {}
            tensors |= {name: shard.get_tensor(name) for name in shard.keys()}  # noqa: SIM118  # no mapping
    return tensors, metadata


def _named_files(folder: Path) -> list[Path]:
    index = folder / _INDEX
    if index.is_file():
        try:
            names = set(json.loads(index.read_text())["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                "the index of the shards is damaged", where=str(index), remedy=_REMEDY
            ) from error
        return [folder / name for name in sorted(names)]
    single = folder / _SINGLE
    return [single] if single.is_file() else sorted(folder.glob("*.safetensors"))
