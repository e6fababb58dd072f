"""How far a layer's states are apart, in units of the states themselves."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_BLOCK = 256  # positions in float64 at once


class Drift:
    """Sums over sequences, in float64, from which one layer's drift follows."""

    def __init__(self) -> None:
        self._rows = 0
        self._noise = 0.0
        self._cosine = 0.0
        self._error = 0.0
        self._signal = 0.0

    def add(self, reference: Tensor, candidate: Tensor) -> None:
        """Add the states [1, n, hidden] of one sequence."""
        for start in range(0, reference.shape[1], _BLOCK):
            true, other = (side[0, start : start + _BLOCK].double() for side in (reference, candidate))
            error = (true - other).square().sum(dim=1)
            signal = true.square().sum(dim=1)
            self._rows += true.shape[0]
            self._noise += float((error / signal).sum())
            self._cosine += float(torch.cosine_similarity(true, other, dim=1).sum())
            self._error += float(error.sum())
            self._signal += float(signal.sum())

    @property
    def sqnr_db(self) -> float | None:
        """Signal to noise in dB, from the mean over positions of noise over signal; ``None`` without noise.

        A mean of ratios: the states at a sequence's first token are often
        thousands of times larger than the rest and would hide everything else.
        """
        return -10 * math.log10(self._noise / self._rows) if self._noise else None

    @property
    def cosine(self) -> float:
        """The mean over positions of the cosine between the two states."""
        return min(1.0, self._cosine / self._rows)

    @property
    def error(self) -> float:
        """The relative Frobenius error over all positions."""
        return math.sqrt(self._error / self._signal)
