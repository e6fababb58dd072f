from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.alarms.session_scores import (
    LEAST_MARGIN,
    Fingerprint,
    cut_of,
    fingerprint,
    judge_relative,
    session_scores,
    usual,
)
from ringtrue.records import State

HONEST = Fingerprint(median=-7.0, threshold=-4.5)


def sessions(rng: np.random.Generator, count: int, center: float = -7.0, spread: float = 0.3) -> np.ndarray:
    return rng.normal(center, spread, count)


def test_a_score_is_the_mean_log_and_missing_where_a_prompt_is() -> None:
    scores = session_scores(np.array([[1.0, np.e**2], [1.0, np.nan], [0.0, 0.0]]))
    assert scores[0] == pytest.approx(1.0, abs=1e-5)
    assert np.isnan(scores[1])
    assert np.isfinite(scores[2])


def test_the_threshold_leaves_room_for_ten_times_the_usual_divergence() -> None:
    rng = np.random.default_rng(0)
    tight = fingerprint(sessions(rng, 400, spread=0.01))
    wide = fingerprint(sessions(rng, 400, spread=1.0))
    alike = fingerprint(np.full(400, -7.0))
    assert tight is not None
    assert wide is not None
    assert alike is not None
    assert tight.threshold - tight.median == pytest.approx(LEAST_MARGIN)
    assert alike.factor == pytest.approx(10)
    assert wide.factor > 100
    assert fingerprint(np.zeros(99)) is None


def test_honest_sessions_are_no_mixture_wherever_their_endpoint_lies() -> None:
    rng = np.random.default_rng(1)
    honest = fingerprint(sessions(rng, 400))
    found = [judge_relative(sessions(rng, 125, center), honest).bad for center in (-9, -7, -6, -3, -1) * 200]
    assert sum(found) == 0


@pytest.mark.parametrize("center", [-9.0, -7.0, -6.5])
def test_a_share_that_lies_a_hundredfold_away_is_found(center: float) -> None:
    rng = np.random.default_rng(2)
    honest = fingerprint(sessions(rng, 400))
    scores = sessions(rng, 125, center)
    scores[:8] += 2 * LEAST_MARGIN + max(0.0, -7.0 - center)
    night = judge_relative(scores, honest)
    assert (night.state, night.bad, night.everywhere) == (State.CHANGED, 8, False)


def test_where_most_sessions_are_off_the_others_are_the_good_ones() -> None:
    rng = np.random.default_rng(3)
    scores = np.append(sessions(rng, 100, -2.0), sessions(rng, 25))
    night = judge_relative(scores, HONEST)
    assert (night.state, night.bad, night.everywhere) == (State.CHANGED, 100, False)


def test_where_all_are_off_it_is_everywhere() -> None:
    night = judge_relative(sessions(np.random.default_rng(4), 125, -2.0), HONEST)
    assert (night.state, night.bad, night.everywhere) == (State.OK, 0, True)


def test_nothing_measured_is_unknown() -> None:
    assert judge_relative(np.array([np.nan, np.nan]), HONEST).state is State.UNKNOWN
    assert judge_relative(np.array([-7.0]), None).state is State.UNKNOWN


@given(st.lists(st.floats(-20, 5), min_size=1, max_size=60), st.floats(-3, 3))
def test_a_shift_of_all_sessions_upwards_never_makes_more_of_them_bad(
    scores: list[float], shift: float
) -> None:
    values = np.array(scores)
    cut = cut_of(values, HONEST)
    assert usual(values) in values
    if not cut.everywhere and usual(values) <= HONEST.threshold:
        assert cut.score >= HONEST.threshold
    moved = cut_of(values + abs(shift), HONEST)
    if usual(values + abs(shift)) <= HONEST.threshold and usual(values) >= HONEST.median:
        bad, fewer = (values > cut.score).sum(), (values + abs(shift) > moved.score + 1e-9).sum()
        assert fewer <= bad
