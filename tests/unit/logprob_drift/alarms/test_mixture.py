import numpy as np
import pytest
from scipy.stats import binom

from logprob_drift.alarms.mixture import (
    FALSE_POSITIVE,
    SHARES,
    bad_session_threshold,
    detectable_share,
    honest_chance,
    judge_sessions,
    session_e_values,
    sessions_needed,
)
from logprob_drift.alarms.restarts import sum_over_starts
from ringtrue.records import State


@pytest.mark.parametrize(("share", "sessions"), [(0.008, 785), (0.05, 124), (0.16, 38), (1.0, 3)])
def test_sessions_that_meet_a_bad_backend_three_times(share: float, sessions: int) -> None:
    assert sessions_needed(share) == sessions


def test_the_detectable_share_is_the_inverse() -> None:
    share = detectable_share(124)

    assert share == pytest.approx(0.05, abs=0.0005)
    assert detectable_share(2) is None


def test_a_share_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        sessions_needed(0.0)


@pytest.mark.parametrize("family", ["gauss", "lognormal_logs", "t5"])
@pytest.mark.parametrize("count", [100, 400, 9999])
def test_an_honest_session_is_rarely_bad(family: str, count: int) -> None:
    rng = np.random.default_rng(7)

    def draw(size: int) -> np.ndarray:
        return rng.standard_t(5, size) if family == "t5" else rng.standard_normal(size) - 7.0

    shares = []
    for _ in range(40):
        threshold = bad_session_threshold(draw(count))
        assert threshold is not None
        shares.append(float((draw(20_000) > threshold).mean()))

    assert np.mean(shares) <= 1.5 * FALSE_POSITIVE


def test_too_few_or_equal_sessions_give_no_threshold() -> None:
    assert bad_session_threshold(np.random.default_rng(0).normal(size=99)) is None
    assert bad_session_threshold(np.ones(500)) is None
    with pytest.raises(ValueError, match="not a number"):
        bad_session_threshold(np.array([np.nan] * 200))


def test_three_bad_sessions_are_a_mixture_and_two_are_not() -> None:
    scores = np.zeros(125)
    scores[:2] = 5.0
    assert judge_sessions(scores, 1.0).state is State.OK
    scores[2] = 5.0

    night = judge_sessions(scores, 1.0)

    assert (night.state, night.bad, night.everywhere) == (State.CHANGED, 3, False)
    assert night.p_value is not None
    assert night.p_value < 1 / 73_000
    assert night.interval is not None
    assert night.interval.low is not None
    assert night.interval.low < 3 / 125 < (night.interval.high or 0)


def test_all_bad_is_no_mixture() -> None:
    assert judge_sessions(np.ones(10), 0.5).everywhere


def test_too_few_sessions_are_unknown_and_say_which_share_they_show() -> None:
    night = judge_sessions(np.zeros(60), 1.0)

    assert night.state is State.UNKNOWN
    assert night.detectable == pytest.approx(0.10, abs=0.01)


def test_without_a_threshold_or_a_score_nothing_is_said() -> None:
    for night in (judge_sessions(np.zeros(200), None), judge_sessions(np.full(200, np.nan), 1.0)):
        assert night.state is State.UNKNOWN
        assert night.share is None


def test_the_e_value_has_expectation_one_at_an_honest_endpoint() -> None:
    counts = np.arange(126)
    chances = binom.pmf(counts, 125, FALSE_POSITIVE)

    values = session_e_values(counts, np.full(126, 125))

    expected = (values * chances).sum(axis=1)
    assert expected[:6] == pytest.approx(np.ones(6))  # for larger shares chances are too small to add up
    assert len(expected) == len(SHARES)
    assert (expected <= 1 + 1e-9).all()


def test_no_sessions_say_nothing() -> None:
    assert session_e_values(np.zeros(3, int), np.zeros(3, int)) == pytest.approx(1)


def test_a_rare_backend_is_found_over_nights() -> None:
    rng = np.random.default_rng(3)
    bad = np.concatenate([np.zeros((40, 20), int), rng.binomial(125, 0.008, (40, 20))], axis=1)
    m = np.mean([sum_over_starts(e).m for e in session_e_values(bad, np.full(bad.shape, 125))], axis=0)

    alarmed = m >= 73_000
    assert not alarmed[:, :20].any()
    assert alarmed[:, 20 + 11].mean() >= 0.95


def test_a_false_alarm_of_one_night_is_rarer_than_one_in_a_million() -> None:
    assert 2e-7 < honest_chance(125) < 1e-6


def test_a_share_of_5_per_cent_is_met_in_one_night_of_125_sessions() -> None:
    """A bad backend at 200 times the honest divergence, as int4 weights are; the score is its log."""
    rng = np.random.default_rng(11)

    def scores(shape: tuple[int, ...]) -> np.ndarray:
        return np.log(rng.lognormal(np.log(0.001), 0.9, (*shape, 8)).mean(axis=-1)) + rng.normal(
            0, 0.2, shape
        )

    threshold = bad_session_threshold(scores((400,)))
    nights = scores((600, 125)) + np.log(200) * (rng.random((600, 125)) < 0.05)
    found = [judge_sessions(night, threshold).state is State.CHANGED for night in nights]
    honest = [judge_sessions(night, threshold).state is State.OK for night in scores((600, 125))]

    assert np.mean(found) >= 0.93
    assert all(honest)
