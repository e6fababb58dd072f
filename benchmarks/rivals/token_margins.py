"""Token margins as published (Token-DiFR, arXiv 2511.20621): greedy tokens, teacher-forced in the reference.

A token's margin is the reference's best logit minus that of the token, clipped
at 0.5; the score is the mean over tokens, which count as independent.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Values = NDArray[np.float64]
CLIP = 0.5


def margins(best: Values, chosen: Values) -> Values:
    """Return the margin of each token from the reference's best and the token's own logit, any shape."""
    return np.minimum(best - chosen, CLIP)


def p_value(honest: Values, seen: Values) -> float:
    """Return the one-sided p-value: the mean margin of ``seen`` tokens exceeds that of ``honest`` ones."""
    spread = math.sqrt(honest.var(ddof=1) / honest.size + seen.var(ddof=1) / seen.size)
    if spread == 0:
        return 1.0 if seen.mean() <= honest.mean() else 0.0
    return float(norm.sf((seen.mean() - honest.mean()) / spread))
