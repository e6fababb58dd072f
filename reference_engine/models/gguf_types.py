"""Weights as a GGUF file holds them.

What ``llama-quantize`` writes without an importance matrix: every matrix of
the decoder layers and the token embedding in the named type, the head (the
embedding, where they are one) in q6_k or better, vectors and routers in
float32. A row that does not divide into the type's blocks takes the type that
llama.cpp falls back to: q8_0 for q6_k, float16 for the others.
"""

from __future__ import annotations

import numpy as np
import torch
from gguf import GGMLQuantizationType, quants
from torch import Tensor

from reference_engine.models.q6_k import SUPER_BLOCK, round_to_q6_k

_BLOCK = 32


def round_to_gguf(weight: Tensor, kind: str) -> Tensor:
    """Return ``weight`` [..., in] as a GGUF file of type ``kind`` holds it, in float32.

    ``kind`` is one of ``kinds.GGUF_TYPES``. All but q6_k are the ``gguf``
    package's own, which agrees with llama.cpp.
    """
    kind = fitting_type(kind, weight.shape[-1])
    if kind == "q6_k":
        return round_to_q6_k(weight)
    if kind == "f16":
        return weight.half().float()
    held = GGMLQuantizationType[kind.upper()]
    rows = weight.float().reshape(-1, weight.shape[-1]).cpu().numpy()
    rounded: np.ndarray = quants.dequantize(quants.quantize(rows, held), held)
    return torch.from_numpy(rounded).to(weight.device).reshape(weight.shape)


def fitting_type(kind: str, columns: int) -> str:
    """Return the type that a tensor with rows of ``columns`` gets in a file of type ``kind``."""
    if kind == "q6_k" and columns % SUPER_BLOCK:
        kind = "q8_0"
    return kind if columns % _BLOCK == 0 else "f16"


def head_type(kind: str) -> str:
    """Return the type of the head in a file of type ``kind``."""
    return "q8_0" if kind == "q8_0" else "q6_k"
