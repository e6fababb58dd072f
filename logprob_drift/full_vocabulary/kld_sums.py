"""The statistics that follow from sums over positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logprob_drift.full_vocabulary.positions import PositionDivergences
from ringtrue.stats import Values


class KldSums:
    """Sums of each sequence, from which any resample of whole sequences is a matrix product away."""

    def __init__(self, positions: PositionDivergences, floor: Values | None = None) -> None:
        clusters, count = positions.clusters
        # Second moments are taken about a common centre: far from it they cancel.
        self._centre = float(positions.logprob_p.mean())
        p, q = positions.logprob_p - self._centre, positions.logprob_q - self._centre
        delta = 100 * positions.delta_p
        columns = {
            "n": np.ones_like(p),
            "kl": positions.kl,
            "reverse": positions.reverse_kl,
            "js": positions.js,
            "p": p,
            "q": q,
            "pp": p * p,
            "qq": q * q,
            "pq": p * q,
            "delta": delta,
            "delta2": delta * delta,
            "same": positions.top1.astype(np.float64),
        }
        if floor is not None:
            columns["floor"] = floor
        self._names = tuple(columns)
        self._sums = np.column_stack(
            [np.bincount(clusters, weights=column, minlength=count) for column in columns.values()]
        )

    def of(self, counts: NDArray[np.int32]) -> dict[str, Values]:
        """Return each statistic, [resamples], where sequence j is drawn ``counts[:, j]`` times.

        What does not exist (a correlation of constants, a ratio to a floor of zero) is NaN.
        """
        totals = counts.astype(np.float64) @ self._sums
        means = dict(zip(self._names, (totals / totals[:, :1]).T, strict=True))
        ln_p, ln_q = -(means["p"] + self._centre), -(means["q"] + self._centre)
        found = {
            "perplexity candidate": np.exp(ln_q),
            "perplexity reference": np.exp(ln_p),
            "perplexity correlation": 100 * _correlation(means),
            "perplexity ln_ratio": ln_q - ln_p,
            "perplexity ratio": np.exp(ln_q - ln_p),
            "perplexity difference": np.exp(ln_q) - np.exp(ln_p),
            "kl mean": means["kl"],
            "kl reverse_mean": means["reverse"],
            "kl js_mean": means["js"],
            "delta_p mean": means["delta"],
            "delta_p rms": np.sqrt(means["delta2"]),
            "same_top": 100 * means["same"],
        }
        if "floor" in means:
            found["floor mean"] = means["floor"]
            found["floor ratio"] = quotient(means["kl"], means["floor"])
        return found


def quotient(top: Values, bottom: Values) -> Values:
    """Return ``top / bottom``, NaN where ``bottom`` is not positive."""
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)


def _correlation(means: dict[str, Values]) -> Values:
    covariance = means["pq"] - means["p"] * means["q"]
    spread = (means["pp"] - means["p"] ** 2) * (means["qq"] - means["q"] ** 2)
    # By rounding, a constant has a variance that is not quite zero, and a perfect one may exceed 1.
    held = np.where(spread > 1e-24, spread, 0.0)
    return np.clip(quotient(covariance, np.sqrt(held)), -1.0, 1.0)
