"""How much a mean of successive nights varies when one night resembles the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

FLOOR = 0.3  # correlation that is assumed at least, until enough nights exist to tell
SETTLED = 30  # nights that can tell
_MOST = 0.9  # beyond it a window of 30 nights holds too little to estimate anything


def lag_one(x: Values) -> Values:
    """Return the lag-1 correlation of the nights up to each one, [streams, nights].

    Estimated from nothing later, so that a shift can't inflate it. Corrected
    for the bias of short series, -(1 + 4 rho) / n (Kendall 1954, "Note on bias
    in the estimation of autocorrelation"); at least 0, and at least 0.3 while
    there are fewer than 30 nights.
    """
    n = np.arange(1, x.shape[1] + 1)
    total = np.cumsum(x, axis=1)
    mean = total / n
    products = np.zeros_like(x)
    products[:, 1:] = np.cumsum(x[:, 1:] * x[:, :-1], axis=1)
    crossed = products - mean * (2 * total - x[:, :1] - x) + (n - 1) * mean**2
    squares = np.cumsum(x * x, axis=1) - n * mean**2
    steady = squares <= 1e-12 * n * np.maximum(mean**2, 1e-300)  # constant, up to rounding
    rho = np.where(steady, 0.0, crossed / np.where(steady, 1.0, squares))
    rho = (rho + 1 / n) / (1 - 4 / np.maximum(n, 8))
    return np.asarray(np.clip(rho, np.where(n < SETTLED, FLOOR, 0.0), _MOST))


def variance_of_mean(rho: Values, n: Values | float) -> Values:
    """Return the variance of the mean of ``n`` successive AR(1) nights, in variances of one night.

    Exact: 1 for a single night, (1 + rho) / (1 - rho) / n for many.
    """
    many = (1 + rho) / (1 - rho)
    return np.asarray((many - 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)) / n)
