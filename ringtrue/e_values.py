"""E-values: evidence that may be read every night, added up and averaged, with the false alarms it costs.

An e-value has an expectation of at most 1 while nothing has changed, so a sum
over candidate changes that reaches A is reached, on average, no sooner than
after A nights (Shin, Ramdas and Rinaldo 2024, "E-detectors"). Background:
docs/methods.md, "Alarms".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]
NIGHTS_A_YEAR = 365


def alarm_threshold(streams: int, *, detectors: int = 1, per_year: float = 1.0) -> float:
    """Return A, the evidence at which one stream alarms, so that the fleet has ``per_year`` false alarms.

    Every pair of stream and detector counts: 200 streams, one detector and one
    false alarm a year give 73,000.

    Raises:
        ValueError: nothing is watched, or no false alarm is tolerated (no finite threshold does that).
    """
    if streams < 1 or detectors < 1 or not per_year > 0:
        raise ValueError(f"{streams} streams, {detectors} detectors, {per_year} alarms a year: no threshold")
    return streams * detectors * NIGHTS_A_YEAR / per_year


def average(e_values: Values, axis: int = -1) -> Values:
    """Return the mean of e-values along ``axis``: an e-value again, however they depend on one another.

    NaN is not measured and left out, which is valid as long as what is missing
    does not depend on the values; where nothing was measured the mean is NaN.
    """
    known = ~np.isnan(e_values)
    count = known.sum(axis=axis)
    total = np.where(known, e_values, 0.0).sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def e_bh(e_values: Values, level: float, *, candidates: float | Values = 1.0) -> Flags:
    """Return which hypotheses e-BH rejects, with a false discovery rate of at most ``level``.

    Takes *current* e-values of shape [hypotheses], never running maxima, in
    any dependence. ``candidates`` is how many candidate changes each was
    summed over, since that is its expectation; each is divided by it. NaN is
    not measured and never rejected. (Wang and Ramdas 2022, "False discovery
    rate control with e-values".)

    Raises:
        ValueError: ``level`` is not inside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a level of {level}")
    scaled = e_values / candidates
    order = np.argsort(-np.where(np.isnan(scaled), -np.inf, scaled), kind="stable")
    measured = int((~np.isnan(scaled)).sum())
    ranks = np.arange(1, measured + 1)
    enough = np.flatnonzero(scaled[order[:measured]] * ranks * level >= measured)
    rejected = np.zeros(e_values.shape, dtype=np.bool_)
    if enough.size:
        rejected[order[: enough[-1] + 1]] = True
    return rejected


@dataclass(frozen=True, slots=True)
class ConfidenceSequence:
    """Limits of a mean after each value, [streams, values]; with probability ``level`` all of them hold."""

    low: Values
    high: Values
    level: float


def confidence_sequence(
    values: Values, *, low: float = 0.0, high: float = 1.0, level: float = 0.99
) -> ConfidenceSequence:
    """Return limits of the mean of values inside [``low``, ``high``], valid at every time at once.

    ``values`` has shape [streams, values], each with the same mean given those
    before it. They need not be independent or alike; where requests of one
    night depend on each other, a night is one value. One may look at each
    value, and stop when one likes. Predictable plug-in empirical Bernstein
    (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
    variables by betting", theorem 2), limits intersected over time.

    Raises:
        ValueError: a value is NaN or outside the range.
    """
    if not bool(np.all((values >= low) & (values <= high))):
        raise ValueError(f"a value is outside [{low}, {high}]")
    x = (values - low) / (high - low)
    t = np.arange(1, x.shape[-1] + 1)
    cost = math.log(2 / (1 - level))
    means = (0.5 + np.cumsum(x, axis=-1)) / (t + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2, axis=-1)) / (t + 1)
    mean_before = _shifted(means, 0.5)
    bets = np.minimum(np.sqrt(2 * cost / (_shifted(variances, 0.25) * t * np.log1p(t))), 0.5)
    total = np.cumsum(bets, axis=-1)
    centre = np.cumsum(bets * x, axis=-1) / total
    spread = np.cumsum((x - mean_before) ** 2 * (-np.log1p(-bets) - bets), axis=-1)
    half = (cost + spread) / total
    lower = np.maximum.accumulate(np.clip(centre - half, 0, 1), axis=-1)
    upper = np.minimum.accumulate(np.clip(centre + half, 0, 1), axis=-1)
    return ConfidenceSequence(low + (high - low) * lower, low + (high - low) * upper, level)


def _shifted(values: Values, first: float) -> Values:
    """Return the values one place later, so that each is what was known before."""
    start = np.full((*values.shape[:-1], 1), first)
    return np.concatenate([start, values[..., :-1]], axis=-1)


def log_t_factor(t2: Values, n_e: Values, nu: Values, g: float) -> Values:
    """Return the log Bayes factor of a two-sample t: any shift, N(0, g) in SDs, against none.

    ``t2`` is t squared, ``n_e`` = n1 n2 / (n1 + n2) and ``nu`` the degrees of
    freedom, all of one shape. For independent normal values its exponential is
    an e-value, and a martingale as nights are added (Gönen et al. 2005; the
    right Haar prior makes it so for every mean and SD).
    """
    k = g * n_e
    u = t2 / nu
    return np.asarray(-0.5 * np.log1p(k) + 0.5 * (nu + 1) * (np.log1p(u) - np.log1p(u / (1 + k))))


def least_t2(n_e: Values, nu: Values, g: float, evidence: float) -> Values:
    """Return the t squared at which `log_t_factor` reaches log ``evidence``; infinite where none does."""
    k = g * n_e
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        needed = np.exp(2 * (math.log(evidence) + 0.5 * np.log1p(k)) / (nu + 1))
        t2 = nu * (needed - 1) / (1 - needed / (1 + k))
    return np.asarray(np.where(needed < 1 + k, t2, np.inf))


def requests_to_alarm(before: float, after: float, threshold: float) -> int:
    """Return the fewest requests that show a rate's change on average: log A over the KL of the two.

    A lower bound: independent requests, both rates known. Change of 0.99 to
    0.95 at A = 73,000: 272.

    Raises:
        ValueError: the rates are equal, or not inside (0, 1).
    """
    if not (0 < before < 1 and 0 < after < 1 and before != after):
        raise ValueError(f"no requests tell a rate of {after} from {before}")
    kl = after * math.log(after / before) + (1 - after) * math.log((1 - after) / (1 - before))
    return math.ceil(math.log(threshold) / kl)
