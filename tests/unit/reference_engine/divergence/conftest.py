"""The small model on disk, and copies of it that are not quite it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel

Change = Callable[[dict[str, torch.Tensor]], None]


@pytest.fixture
def changed(tmp_path: Path, small_engine: Engine, small_model: Path) -> Callable[[Change], LoadedModel]:
    """Load a copy of the small model after a change of its weights by name."""

    def copy(change: Change) -> LoadedModel:
        folder = tmp_path / "changed"
        shutil.copytree(small_model, folder)
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return small_engine.load(str(folder))

    return copy


@pytest.fixture(scope="session")
def sequences() -> list[tuple[int, ...]]:
    """Eight sequences of bytes, of different lengths."""
    rng = np.random.default_rng(11)
    return [tuple(rng.integers(0, 256, length).tolist()) for length in (2, 3, 17, 40, 64, 64, 65, 200)]
