"""What is left of a quantized checkpoint once it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from reference_engine.models.activations import InputRounding


@dataclass(frozen=True, slots=True)
class DenseCheckpoint:
    """The float32 tensors of a checkpoint by name, and the modules, by name, whose inputs are rounded."""

    tensors: dict[str, Tensor]
    input_roundings: Mapping[str, InputRounding] = field(default_factory=dict)
