"""First tokens of prompts that sit close to a tie (docs/methods.md, "Border inputs").

Border prompts after B3IT (arXiv 2602.11083). Two things are read from a
night's answers: *support violations*, which find another model within one
batch, and the distance of the counts from the reference's probabilities,
which goes through the night detector and finds smaller changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from logprob_drift.alarms.metric import Metric
from logprob_drift.alarms.restarts import sum_over_starts
from ringtrue.stats import Values

CORRELATION_FLOOR = 0.05  # intra-batch correlation assumed at least, until there are enough nights
CORRELATION_NIGHTS = 14
DISTANCE = Metric(resolution=1e-3, unit="total variation")  # of a night, for the night detector
_PRIOR = (3.0, 1.0)  # Beta of the share of violations under another model
_LARGEST = 0.95  # an intra-batch correlation of 1 would allow anything

Counts = NDArray[np.int64]


def supported(probabilities: Values, asks: int) -> NDArray[np.bool_]:
    """Return which tokens the reference supports: those with probability >= 3 / ``asks``.

    ``probabilities`` has shape [prompts, tokens]; ``asks`` is the number of
    answers a prompt behind them (by the rule of three, a token never seen in
    n answers lies below 3/n with 95 % confidence), or, where they are exact,
    how many answers they stand for.

    Raises:
        ValueError: fewer than 4 asks, which support nothing.
    """
    if asks < 4:
        raise ValueError(f"{asks} asks a prompt support no token")
    held: NDArray[np.bool_] = probabilities >= 3 / asks
    return held


def violations(counts: Counts, support: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many prompts of each night had a first token outside their support, [nights].

    ``counts`` [nights, prompts, tokens], with a last column for every token
    that has none of its own; ``support`` [prompts, tokens]. A prompt counts at
    most once a night: its answers share a batch.
    """
    outside = np.where(support, 0, counts).sum(axis=2)
    found: NDArray[np.int64] = (outside > 0).sum(axis=1).astype(np.int64)
    return found


def violation_rate(violating: int, asked: int) -> float:
    """Return the rate that honest prompts stay below with 95 % confidence: (violations + 3) / (asked + 3).

    From prompts (each in a batch of its own) at the set-up: reference replays,
    or the baseline's nights.

    Raises:
        ValueError: more violations than prompts, or none asked.
    """
    if not 0 <= violating <= asked or asked == 0:
        raise ValueError(f"{violating} violations in {asked} prompts")
    return (violating + 3) / (asked + 3)


def intra_batch_correlation(counts: Counts, asks: Counts) -> float:
    """Return the correlation of answers of one batch, for the beta-binomial null.

    ``counts`` [nights, prompts] is how often each prompt's first choice (or
    any one event) was seen, ``asks`` of the same shape how often it was asked
    (0: not that night). By moments: the spread between nights beyond the
    binomial's, pooled over prompts. Nights with one ask carry no information.
    Floored at `CORRELATION_FLOOR` until `CORRELATION_NIGHTS` nights carry
    some, and then at 0.
    """
    informative = asks > 1
    nights = int(informative.any(axis=1).sum())
    floor = CORRELATION_FLOOR if nights < CORRELATION_NIGHTS else 0.0
    total = np.where(informative, asks, 0).sum(axis=0)
    shown = (np.where(informative, counts, 0).sum(axis=0) / np.maximum(total, 1)).astype(np.float64)
    used = informative.sum(axis=0)
    variance = shown * (1 - shown)
    deviation = np.where(informative, (counts - asks * shown) ** 2, 0.0).sum(axis=0)
    # The mean is estimated from the same nights, which takes one of them away.
    deviation = deviation * np.divide(used, used - 1, out=np.zeros(used.shape), where=used > 1)
    usable = (used > 1) & (variance > 0)
    binomial = (np.where(informative, asks, 0).sum(axis=0) * variance)[usable].sum()
    pairs = (np.where(informative, asks * (asks - 1), 0).sum(axis=0) * variance)[usable].sum()
    if pairs <= 0:
        return max(floor, CORRELATION_FLOOR)
    estimate = float((deviation[usable].sum() - binomial) / pairs)
    return min(max(estimate, floor), _LARGEST)


def violation_e_values(
    violating: NDArray[np.int64], prompts: Counts, rate: float, correlation: float
) -> Values:
    """Return the e-value of each night's number of violating prompts, any shape.

    Under the null the ``prompts`` of a night violate with probability at most
    ``rate`` each and are correlated by ``correlation`` (beta-binomial); under
    the alternative their common rate is Beta(3, 1). 1 where nothing was asked.

    Raises:
        ValueError: a rate or a correlation outside (0, 1) and [0, 1).
    """
    if not 0 < rate < 1 or not 0 <= correlation < 1:
        raise ValueError(f"a rate of {rate} with correlation {correlation}")
    alternative = _log_beta_binomial(violating, prompts, *_PRIOR)
    if correlation < 1e-6:
        null = (
            _log_choose(prompts, violating)
            + violating * np.log(rate)
            + (prompts - violating) * np.log1p(-rate)
        )
    else:
        size = (1 - correlation) / correlation
        null = _log_beta_binomial(violating, prompts, rate * size, (1 - rate) * size)
    values: Values = np.exp(np.minimum(alternative - null, 300.0))
    return values


def _log_choose(n: Counts, k: Counts) -> Values:
    found: Values = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return found


def _log_beta_binomial(k: Counts, n: Counts, a: float, b: float) -> Values:
    found: Values = _log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b)
    return found


@dataclass(frozen=True, slots=True)
class ViolationAlarms:
    """``m`` [streams, nights] summed over starts, where it reached the threshold, and since when (night)."""

    m: Values
    alarms: NDArray[np.bool_]
    since: NDArray[np.int64]


def violation_alarms(
    violating: NDArray[np.int64], prompts: Counts, *, rate: float, correlation: float, threshold: float
) -> ViolationAlarms:
    """Return the alarms of streams [streams, nights]; ``prompts`` of the same shape, 0 for a night without.

    Nights are independent under the null, prompts of one night need not be;
    a correlation taken too low costs false alarms (0.05 for a true 0.3: about
    20 a year in 200 streams, where the budget is one). Expected nights between
    false alarms: at least ``threshold`` a stream. A swapped model is a
    violation at most prompts, so that one batch of 10 suffices; figures in
    docs/methods.md, "Border inputs".
    """
    summed = sum_over_starts(violation_e_values(violating, prompts, rate, correlation))
    return ViolationAlarms(summed.m, summed.m >= threshold, summed.since)


def distance(counts: Counts, probabilities: Values) -> Values:
    """Return each night's mean total variation between counts and the reference, in [0, 1], [nights].

    ``counts`` [nights, prompts, tokens] and ``probabilities`` [prompts,
    tokens] over the same tokens, the last of which is all others. NaN for a
    night on which nothing was asked. This is the night's number (`DISTANCE`) for the
    night detector, which knows the spread between nights; the distance of honest
    nights is not 0.
    """
    asks = counts.sum(axis=2, keepdims=True)
    shares = counts / np.maximum(asks, 1)
    each = 0.5 * np.abs(shares - probabilities).sum(axis=2)
    asked = asks[:, :, 0] > 0
    nights: Values = np.divide(
        np.where(asked, each, 0.0).sum(axis=1),
        asked.sum(axis=1),
        out=np.full(counts.shape[0], np.nan),
        where=asked.any(axis=1),
    )
    return nights


def distance_p_value(
    counts: Counts,
    probabilities: Values,
    correlation: float,
    rng: np.random.Generator,
    draws: int = 999,
) -> float:
    """Return the p-value of one night's distance, (1 + #{>=}) / (draws + 1), never 0.

    ``counts`` [prompts, tokens]. Honest nights are drawn from a
    Dirichlet-multinomial with the given intra-batch correlation, prompts
    independent of one another; nothing is exchanged between nights.
    """
    asks = counts.sum(axis=1)
    drawn = np.zeros((draws, *counts.shape), dtype=np.int64)
    size = (1 - correlation) / max(correlation, 1e-6)
    for at, (prompt, asked) in enumerate(zip(probabilities, asks, strict=True)):
        chances = rng.dirichlet(np.maximum(prompt, 1e-12) * size, size=draws) if correlation > 0 else prompt
        drawn[:, at] = rng.multinomial(int(asked), chances, size=None if correlation > 0 else draws)
    seen = float(distance(counts[None], probabilities)[0])
    if np.isnan(seen):
        raise ValueError("nothing was asked")
    return float((1 + (distance(drawn, probabilities) >= seen - 1e-12).sum()) / (draws + 1))
