"""Rounding of numbers to few bits, as a faulty or a cheap server does it.

Every function keeps shape and dtype, computes in float32, and returns what the
rounded numbers stand for: the values a server computes with.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_engine.models.kinds import DEFAULT_GROUP

FP8_LARGEST = torch.finfo(torch.float8_e4m3fn).max  # 448
INT8_LARGEST = 127


def round_to_nearest(weight: Tensor, bits: int, *, group: int = DEFAULT_GROUP) -> Tensor:
    """Return ``weight`` [..., in] after symmetric absmax rounding to nearest.

    Every ``group`` neighbours along the input dimension share one scale,
    absmax / (2^(bits-1) - 1), so that the largest of them is kept exactly up
    to one rounding (docs/methods.md, "Weight variants"). A shorter last group
    has a scale of its own.
    """
    levels = 2 ** (bits - 1) - 1
    columns = weight.shape[-1]
    padded = torch.nn.functional.pad(weight, (0, -columns % group)) if columns % group else weight
    grouped = padded.float().reshape(*weight.shape[:-1], -1, group)
    scale = _absmax(grouped).div_(levels)
    scale.masked_fill_(scale == 0, 1)  # a group of zeros stays zero
    rounded: Tensor = (grouped / scale).round_().mul_(scale)
    return rounded.flatten(-2)[..., :columns].to(weight.dtype)


def round_rows_to_float8(values: Tensor) -> Tensor:
    """Return ``values`` [..., n] in float8 e4m3, each row scaled so that its largest is 448.

    A row is an output channel of a weight, or a token of an activation.
    """
    wide = values.float()
    scale = _absmax(wide).div_(FP8_LARGEST)
    scale.masked_fill_(scale == 0, 1)
    return to_float8(wide / scale).mul_(scale).to(values.dtype)


def round_rows_to_int8(values: Tensor, *, largest: float = INT8_LARGEST) -> Tensor:
    """Return ``values`` [..., n] in int8, each row with the scale absmax / ``largest``."""
    wide = values.float()
    scale = _absmax(wide).div_(largest)
    scale.masked_fill_(scale == 0, 1)
    return to_int8(wide / scale).mul_(scale).to(values.dtype)


def to_int8(values: Tensor) -> Tensor:
    """Return float32 ``values`` rounded to whole numbers in [-128, 127]."""
    return values.round().clamp_(-INT8_LARGEST - 1, INT8_LARGEST)


def to_float8(values: Tensor) -> Tensor:
    """Return float32 ``values`` cast to float8 e4m3 and back; beyond 448 they saturate."""
    # The cast itself makes NaN of what does not fit.
    return values.clamp(-FP8_LARGEST, FP8_LARGEST).to(torch.float8_e4m3fn).float()


def _absmax(values: Tensor) -> Tensor:
    largest: Tensor = torch.linalg.vector_norm(values, ord=torch.inf, dim=-1, keepdim=True)
    return largest
