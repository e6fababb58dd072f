"""Which sessions stand out from the endpoint's own others? (docs/methods.md, "Mixtures").

A session's score is the mean log of its prompts' divergences: it has no bound
above, and a prompt that lies further from the reference than another only
shifts all scores alike. A backend that is everywhere a little off (other
kernels, int8) shifts its scores too, so a session is held against the usual
one of the same endpoint, and not only against honest ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from logprob_drift.alarms.mixture import (
    CALIBRATION_NEEDS,
    HITS,
    SessionNight,
    bad_session_threshold,
    judge_sessions,
)
from logprob_drift.night import GROSS
from ringtrue.stats import Values

TINY = 1e-6  # nats; below it two divergences are alike
LEAST_MARGIN = float(np.log(GROSS))  # of a bad session's score beyond the usual one's


def session_scores(divergences: Values) -> Values:
    """Return the mean log of ``divergences`` [sessions, prompts] in nats, NaN where a prompt is missing."""
    scores: Values = np.log(divergences + TINY).mean(axis=1)
    return scores


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What honest sessions score: their ``median``, and the ``threshold`` that hardly one exceeds."""

    median: float
    threshold: float

    @property
    def factor(self) -> float:
        """How many times as far as the usual session a bad one has to diverge, at least."""
        return float(np.exp(self.threshold - self.median))


def fingerprint(honest: Values) -> Fingerprint | None:
    """Return the fingerprint of the ``honest`` scores [sessions], ``None`` with fewer than 100.

    The threshold is `bad_session_threshold`, but at least 10 times the usual
    divergence: an endpoint's kernels and batches are not ours, and its honest
    sessions may spread more. Where ours do not spread at all, that stands alone.

    Raises:
        ValueError: a score is not finite.
    """
    if honest.size < CALIBRATION_NEEDS:
        return None
    threshold = bad_session_threshold(honest)
    median = usual(honest)
    least = median + LEAST_MARGIN
    return Fingerprint(median, least if threshold is None else max(threshold, least))


def usual(scores: Values) -> float:
    """Return the lower median: it is always a session's own score, never one between two backends'."""
    return float(np.sort(scores)[(scores.size - 1) // 2])


@dataclass(frozen=True, slots=True)
class Cut:
    """The score beyond which a session is bad; ``everywhere``: the usual one is off, and so are all."""

    score: float
    everywhere: bool


def cut_of(scores: Values, honest: Fingerprint) -> Cut:
    """Return the cut for one night's ``scores`` [sessions], at least one and none NaN.

    It is the honest threshold, shifted by what the usual session exceeds the
    honest median. Where the usual session is itself beyond the threshold,
    those within it that lie as far below the usual one are the good ones, and
    all others bad; with fewer than `HITS` good ones the fault is everywhere.
    """
    middle = usual(scores)
    shifted = honest.threshold + max(0.0, middle - honest.median)
    if middle <= honest.threshold:
        return Cut(shifted, everywhere=False)
    spared = min(honest.threshold, middle - (honest.threshold - honest.median))
    if int((scores <= spared).sum()) >= HITS:
        return Cut(spared, everywhere=False)
    return Cut(shifted, everywhere=True)


def judge_relative(scores: Values, honest: Fingerprint | None, *, share: float = 0.05) -> SessionNight:
    """Judge one night's ``scores`` [sessions] by the endpoint's own usual session; NaN gave none.

    As `judge_sessions` with `cut_of`. This assumes that the sessions of one
    backend spread no more than the threshold leaves room for, wherever they lie.
    """
    measured = scores[~np.isnan(scores)]
    if honest is None or measured.size == 0:
        return judge_sessions(scores, None, share=share)
    cut = cut_of(measured, honest)
    return replace(judge_sessions(scores, cut.score, share=share), everywhere=cut.everywhere)
