"""The rule by which a sample recomputed exactly vouches for a server's scores.

Every sequence gives one number: positions of one sequence are not
independent. D is the divergence of what was served from the exact
distribution, F that of an honest server on the same sequence.

The rule of one night refuses what is beyond the floor. That it does not
refuse is no proof, so trust needs evidence of its own: by the sign test the
median of D / F must be at most `RATIO`, with 99 % confidence. It needs no
shape, and at least `NEEDED` sequences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from logprob_drift.night import NUMERIC, RATIO, gross_limit, one_bucket
from ringtrue.records import DRIFT, State

NEEDED = 7
"""Sequences for any answer: that all n lie on one side of a median happens in 2^-n of cases, 2^-7 < 1 %."""

_ERROR = 0.01
_MOST = 256  # sequences beyond which nobody is asked to go

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """What ``n`` sequences say: ``mean`` and ``largest`` D, and ``floor``, the mean F, in nats.

    ``within`` of them have a D of at most `RATIO` x F.
    ``state`` is OK, CHANGED, WORSE, or UNKNOWN when ``n`` is too few to tell;
    ``needed`` is then a number of sequences that would tell if the share
    ``within`` stays, ``None`` if none would.
    """

    state: State
    n: int
    mean: float
    floor: float
    largest: float
    within: int
    needed: int | None

    def __str__(self) -> str:
        return (
            f"{self.mean:.3g} nats (an honest server {self.floor:.3g}, largest of a sequence "
            f"{self.largest:.3g}), {self.within} of {self.n} sequences within {RATIO:g} x honest"
        )


def judge_divergences(d: Values, f: Values, rng: np.random.Generator) -> Sample:
    """Judge divergences ``d`` beside floors ``f``, both of shape [sequences], in nats.

    First by the rule of one night, which alone knows a tolerance, then as `judge_pairs`.

    Raises:
        ValueError: when the shapes differ or are empty.
    """
    sample = judge_pairs(d, f)
    night = one_bucket(d, f, gross_limit(f), rng)
    return replace(sample, state=night.state, needed=None) if night.state in DRIFT else sample


def judge_pairs(d: Values, f: Values) -> Sample:
    """Judge distances ``d`` beside an honest server's ``f``, both of shape [sequences], in nats.

    CHANGED when one sequence is grossly beyond (`gross_limit`), or the sign
    test puts the median of d / f beyond `RATIO`; OK when it puts it within.

    Raises:
        ValueError: when the shapes differ or are empty.
    """
    if d.shape != f.shape or not d.size:
        raise ValueError(f"{d.shape} distances beside {f.shape}")
    n = int(d.size)
    within = int((d <= np.maximum(RATIO * f, NUMERIC)).sum())
    side = side_of_median(within, n)
    if float(d.max()) > gross_limit(f) or side is False:
        state = State.CHANGED
    else:
        state = State.OK if side else State.UNKNOWN
    needed = _needed(within, n) if state is State.UNKNOWN else None
    return Sample(state, n, float(d.mean()), float(f.mean()), float(d.max()), within, needed)


def side_of_median(within: int, n: int) -> bool | None:
    """Return whether the median is within, by a sign test at 1 % a side; ``None`` if it can't be told."""
    if binom.sf(within - 1, n, 0.5) <= _ERROR:
        return True
    return False if binom.cdf(within, n, 0.5) <= _ERROR else None


def _needed(within: int, n: int) -> int | None:
    sizes = np.arange(max(n + 1, NEEDED), _MOST + 1)
    tells = binom.sf(within * sizes // n - 1, sizes, 0.5) <= _ERROR
    return int(sizes[np.argmax(tells)]) if tells.any() else None
