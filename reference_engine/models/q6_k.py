"""llama.cpp's q6_K: super-blocks of 256 weights, 6 bits each.

A super-block holds 16 blocks of 16 weights. A weight is d * s * q: q in
[-32, 31] is its own, s in [-128, 127] its block's, and the float16 d its
super-block's. The format and the search for scales are those of
``quantize_row_q6_K_ref`` in llama.cpp (ggml-quants.c, MIT), which no importance
matrix guides.
"""

from __future__ import annotations

import torch
from torch import Tensor

SUPER_BLOCK = 256

_BLOCK = 16
_LOW, _HIGH = -32, 31
_TINY = 1e-15  # a block whose largest weight is smaller counts as zero
_STEPS = (0, *range(-9, 0), *range(1, 10))  # in tenths of a quant; the first of equals wins
_CHUNK = 2**10  # super-blocks at a time: the search holds a handful of copies of them


def round_to_q6_k(weight: Tensor) -> Tensor:
    """Return ``weight`` [..., in] as q6_K holds it, in float32; ``in`` is a multiple of 256."""
    blocks = weight.float().reshape(-1, SUPER_BLOCK // _BLOCK, _BLOCK)
    return torch.cat([_round(chunk) for chunk in torch.split(blocks, _CHUNK)]).reshape(weight.shape)


def _round(blocks: Tensor) -> Tensor:
    scales = _best_scales(blocks)
    largest = scales.gather(1, scales.abs().argmax(dim=1, keepdim=True))
    inverse = torch.full_like(largest, -128) / largest
    super_scale = (1 / inverse).half().float()
    steps = (inverse * scales).round().clamp(max=127)
    block_scales = torch.where(largest.abs() < _TINY, 0.0, super_scale * steps).unsqueeze(2)
    quants = (blocks / block_scales).round().clamp(_LOW, _HIGH)
    return torch.where(block_scales == 0, 0.0, block_scales * quants)


def _best_scales(blocks: Tensor) -> Tensor:
    """Return for each block [super-blocks, 16] the scale, of 19 tried, that loses least.

    Errors are weighed by the weights squared. A tried scale gives quants q,
    and these give the scale that fits them best by least squares,
    sum(w x q) / sum(w q q); it explains sum(w x q)^2 / sum(w q q).
    """
    values = blocks.flatten(0, 1).T.contiguous()  # a block is a column, summed in llama.cpp's order
    peak = values.gather(0, values.abs().argmax(0, keepdim=True))[0]  # signed
    squares = values * values
    cubes = squares * values
    scale = best = torch.zeros_like(peak)
    for step in _STEPS:
        numerator = -(32 + step * torch.tensor(0.1, device=peak.device))
        quants = (values * (numerator.expand_as(peak) / peak)).round_().clamp_(_LOW, _HIGH)
        cross = _sum(cubes * quants)
        square = _sum((squares * quants).mul_(quants))
        better = (square > 0) & (cross * cross > best * square)
        scale = torch.where(better, cross / square, scale)
        best = torch.where(better, scale * cross, best)
    return torch.where(peak.abs() < _TINY, 0.0, scale).reshape(blocks.shape[:2])


def _sum(terms: Tensor) -> Tensor:
    total = torch.zeros_like(terms[0])
    for row in terms:
        total += row
    return total
