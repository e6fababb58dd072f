"""Are some sessions served by another backend? (docs/methods.md, "Mixtures").

One number a session (a new connection with a cache key of its own), larger
for a worse one. A session is *bad* beyond a threshold that an honest one
passes at most once in 10,000, so three bad ones in a night are no accident.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy
from scipy.stats import binom

from ringtrue.records import Interval, State
from ringtrue.stats import Values, wilson

FALSE_POSITIVE = 1e-4  # share of honest sessions beyond the threshold
HITS = 3  # bad sessions that make a mixture
POWER = 0.95
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9)  # alternatives that the e-value mixes
CALIBRATION_NEEDS = 100  # honest sessions
_LARGEST = 600.0  # log e-value; more would overflow and say no more
_TAIL = 0.1  # share of the honest sessions that the tail is fitted to
_SHAPE = 0.25  # tail index: heavier than that of Student's t with 5 degrees of freedom


def sessions_needed(share: float, *, hits: int = HITS, power: float = POWER) -> int:
    """Return how many sessions meet a backend with this share at least ``hits`` times with ``power``.

    Sessions are assumed to be routed independently.

    Raises:
        ValueError: a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"a share of {share}")
    low, high = hits - 1, hits
    while binom.sf(hits - 1, high, share) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if binom.sf(hits - 1, middle, share) >= power else (middle, high)
    return high


def detectable_share(sessions: int, *, hits: int = HITS, power: float = POWER) -> float | None:
    """Return the smallest share of bad sessions that this many would show, ``None`` if none."""
    if binom.sf(hits - 1, sessions, 1.0) < power:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if binom.sf(hits - 1, sessions, middle) >= power else (middle, high)
    return high


def bad_session_threshold(honest: Values, rate: float = FALSE_POSITIVE) -> float | None:
    """Return the score that an honest session exceeds with probability at most ``rate``.

    ``honest`` [sessions] are scores of honest sessions, whole ones with batches
    of their own, on a scale without a bound above (log divergence). With
    1 / rate of them the largest is the threshold, whatever the distribution:
    a fresh session exceeds it with probability 1 / (n + 1). With fewer, the
    largest tenth is continued as a generalised Pareto tail of index 0.25 with
    the mean that they show. This assumes a tail no heavier, so divergences are
    to be given as logs, and it is cautious: only gross sessions pass it. Fewer
    than `CALIBRATION_NEEDS`, or equal scores: ``None``, no fingerprint.

    Raises:
        ValueError: a score is not finite.
    """
    if not bool(np.isfinite(honest).all()):
        raise ValueError("a session's score is not a number")
    count = honest.size
    if count + 1 >= 1 / rate:
        return float(honest.max())
    if count < CALIBRATION_NEEDS:
        return None
    ascending = np.sort(honest)
    cut = count - math.ceil(_TAIL * count)
    start = float(ascending[cut - 1])
    excess = ascending[cut:] - start
    mean = float(excess.mean())
    if mean <= 0:
        return None
    scale = mean * (1 - _SHAPE)
    beyond = (excess.size / count) / rate
    return max(float(ascending[-1]), float(start + scale / _SHAPE * (beyond**_SHAPE - 1)))


@dataclass(frozen=True, slots=True)
class SessionNight:
    """What the sessions of one night say.

    ``interval`` is the Wilson interval of the share of bad sessions.
    ``p_value`` is the probability of so many bad ones at an honest endpoint.
    ``detectable`` is the smallest share that so many sessions would show with
    95 % power. ``everywhere``: every session is bad, so that it is no mixture.
    """

    state: State
    n: int
    bad: int
    share: float | None
    interval: Interval | None
    p_value: float | None
    detectable: float | None
    everywhere: bool


def judge_sessions(scores: Values, threshold: float | None, *, share: float = 0.05) -> SessionNight:
    """Judge one night's ``scores`` [sessions]; NaN is a session that gave none.

    CHANGED at `HITS` bad sessions. An honest endpoint reaches that with
    probability C(n, 3) 1e-12: 3e-7 for 125 independent sessions. OK needs
    enough sessions to have met a backend of ``share``; else, and without a
    threshold, UNKNOWN.
    """
    measured = scores[~np.isnan(scores)]
    count = int(measured.size)
    detectable = detectable_share(count)
    if threshold is None or count == 0:
        return SessionNight(State.UNKNOWN, count, 0, None, None, None, detectable, everywhere=False)
    bad = int((measured > threshold).sum())
    if bad >= HITS:
        state = State.CHANGED
    else:
        state = State.OK if detectable is not None and detectable <= share else State.UNKNOWN
    return SessionNight(
        state=state,
        n=count,
        bad=bad,
        share=bad / count,
        interval=wilson(bad, count),
        p_value=float(binom.sf(bad - 1, count, FALSE_POSITIVE)),
        detectable=detectable,
        everywhere=bad == count,
    )


def session_e_values(bad: NDArray[np.int64], sessions: NDArray[np.int64]) -> Values:
    """Return e-values [shares, ...] of counts of bad sessions against each share of `SHARES`.

    The likelihood ratio of Binomial(n, share) to Binomial(n, `FALSE_POSITIVE`):
    its expectation is at most 1 while an honest session is bad at most that
    often and sessions are independent. Nights without sessions give 1. Sum
    each share over starts (`restarts.sum_over_starts`), then average over
    shares: rare backends are found by evidence over nights.
    """
    shares = np.array(SHARES).reshape(-1, *([1] * bad.ndim))
    good = sessions - bad
    logs = xlogy(bad, shares / FALSE_POSITIVE) + xlog1py(good, -shares) - xlog1py(good, -FALSE_POSITIVE)
    values: Values = np.exp(np.minimum(logs, _LARGEST))
    return values


def honest_chance(sessions: int, *, hits: int = HITS) -> float:
    """Return the probability of a false alarm in a night of so many sessions."""
    return float(binom.sf(hits - 1, sessions, FALSE_POSITIVE))
