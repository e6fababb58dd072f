"""How one kind of nightly number is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Scale(StrEnum):
    """On which scale a metric's nights are normal: declared with the metric, never chosen from its data."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Metric:
    """How one kind of number is read.

    ``resolution`` (> 0, in ``unit``) is the least difference that is measured
    at all; no SD is taken to be smaller. On the log scale, for skewed numbers
    that are never negative, x is read as log(1 + x / resolution).

    Raises:
        ValueError: the resolution is not a positive number.
    """

    resolution: float
    scale: Scale = Scale.LINEAR
    unit: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.resolution < np.inf:
            raise ValueError(f"a resolution of {self.resolution} {self.unit}")

    def scaled(self, values: Values) -> Values:
        """Return ``values`` on the metric's scale; NaN stays NaN."""
        return np.log1p(values / self.resolution) if self.scale is Scale.LOG else values

    def in_unit(self, scaled: float) -> float:
        """Return what a number on the metric's scale is in its unit."""
        return self.resolution * math.expm1(scaled) if self.scale is Scale.LOG else scaled

    def least_sd(self, scaled: float) -> float:
        """Return the SD, on the metric's scale, that is one resolution at the level ``scaled``."""
        return math.exp(-scaled) if self.scale is Scale.LOG else self.resolution
