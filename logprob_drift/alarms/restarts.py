"""One e-value a night, summed over the nights a change may have begun on (docs/methods.md, "Alarms")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringtrue.stats import Values

CANDIDATES = 30  # nights on which a change may have begun


@dataclass(frozen=True, slots=True)
class RestartedSum:
    """The sum over starts M, and the start that explains each night best.

    ``m`` [streams, nights] is the sum over candidate starts of the product of
    the nights' e-values from that start on; ``starts`` is how many there were,
    so that ``m / starts`` is an e-value of the night; ``since`` the night
    whose product is the largest.
    """

    m: Values
    starts: NDArray[np.int64]
    since: NDArray[np.int64]


def sum_over_starts(e_values: Values, candidates: int = CANDIDATES) -> RestartedSum:
    """Return M for e-values of shape [streams, nights]; NaN, a night that was not measured, counts as 1.

    If every night's e-value has expectation at most 1 given the nights before
    it, then M - t is a supermartingale, and the expected number of nights to
    the first M >= A is at least A on an honest stream (Shin, Ramdas and
    Rinaldo 2024, "E-detectors"). Only the last ``candidates`` starts are
    summed, which can only lower M. It restarts by itself: after quiet nights
    the old products are gone.

    Raises:
        ValueError: a negative e-value.
    """
    if bool((e_values < 0).any()):
        raise ValueError("an e-value is never negative")
    streams, nights = e_values.shape
    logs = np.log(np.maximum(np.where(np.isnan(e_values), 1.0, e_values), 1e-300))
    m, since = np.zeros((streams, nights)), np.zeros((streams, nights), dtype=np.int64)
    ends = np.concatenate([np.zeros((streams, 1)), np.cumsum(logs, axis=1)], axis=1)
    starts = np.minimum(np.arange(1, nights + 1), candidates)
    for night in range(nights):
        first = night + 1 - starts[night]
        products = ends[:, night + 1 : night + 2] - ends[:, first : night + 1]
        m[:, night] = np.exp(np.minimum(products, 690.0)).sum(axis=1)
        since[:, night] = first + products.argmax(axis=1)
    return RestartedSum(m, starts, since)
