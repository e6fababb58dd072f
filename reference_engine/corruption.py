"""A memory fault beyond a length: hidden states of late positions are scrambled in mid-model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def corrupted(layers: nn.ModuleList, beyond: Sequence[int | None], offset: int) -> Iterator[None]:
    """Corrupt, while open, the middle layer's output at every position from ``beyond[row]`` on.

    ``beyond`` has one entry a batch row; a row of ``None`` stays untouched.
    ``offset`` is the position of the batch's first column. The corruption
    rolls the hidden state by half its width: deterministic, of equal norm, and
    without any effect on earlier positions, since attention is causal.
    """
    if all(start is None for start in beyond):
        yield
        return

    def scramble(_module: nn.Module, _arguments: Any, output: Any) -> Any:
        hidden = output[0] if isinstance(output, tuple) else output
        mixed = _scrambled(hidden, beyond, offset)
        return (mixed, *output[1:]) if isinstance(output, tuple) else mixed

    handle = layers[len(layers) // 2].register_forward_hook(scramble)
    try:
        yield
    finally:
        handle.remove()


def _scrambled(hidden: Tensor, beyond: Sequence[int | None], offset: int) -> Tensor:
    mixed = hidden.clone()
    for row, start in enumerate(beyond):
        if start is not None:
            late = max(0, start - offset)
            mixed[row, late:] = torch.roll(hidden[row, late:], hidden.shape[-1] // 2, dims=-1)
    return mixed
