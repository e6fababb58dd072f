"""Rounding of weights to few bits, as a faulty or a cheap server does it."""

from __future__ import annotations

import torch
from torch import Tensor

GROUP = 32


def round_to_nearest(weight: Tensor, bits: int, *, group: int = GROUP) -> Tensor:
    """Return ``weight`` after symmetric absmax rounding to nearest, in its own dtype.

    ``weight`` has shape [out, in]. Every ``group`` neighbours along the input
    dimension share one scale, absmax / (2^(bits-1) - 1), so that the largest
    of them is kept exactly up to one rounding (docs/methods.md, "Weight
    variants"). A shorter last group has a scale of its own. Computed in
    float32.
    """
    levels = 2 ** (bits - 1) - 1
    rows, columns = weight.shape
    padded = torch.nn.functional.pad(weight, (0, -columns % group)) if columns % group else weight
    grouped = padded.float().reshape(rows, -1, group)
    scale = torch.linalg.vector_norm(grouped, ord=torch.inf, dim=-1, keepdim=True) / levels
    scale.masked_fill_(scale == 0, 1)  # a group of zeros stays zero
    rounded: Tensor = (grouped / scale).round_().mul_(scale)
    return rounded.view(rows, -1)[:, :columns].to(weight.dtype)
