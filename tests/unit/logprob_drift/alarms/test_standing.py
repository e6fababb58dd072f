from __future__ import annotations

import numpy as np
import pytest

from logprob_drift.alarms.metric import Metric, Scale
from logprob_drift.alarms.standing import (
    BACK_NIGHTS,
    Baseline,
    baseline_of,
    is_back,
    nights_of_the_null,
    rate_is_back,
)

LINEAR = Metric(1e-3)
LOG = Metric(1e-4, Scale.LOG, "nats")


def test_a_baseline_is_mean_and_sd_on_the_metrics_scale() -> None:
    found = baseline_of(np.array([0.001, 0.002]), LOG)
    logs = np.log1p(np.array([10.0, 20.0]))
    assert found == Baseline(pytest.approx(logs.mean()), pytest.approx(logs.std(ddof=1)))
    assert LOG.in_unit(float(LOG.scaled(np.array([0.0015]))[0])) == pytest.approx(0.0015)


def test_no_spread_is_below_the_resolution() -> None:
    assert baseline_of(np.full(20, 0.5), LINEAR) == Baseline(0.5, 1e-3)
    assert baseline_of(np.full(20, 0.0009), LOG).spread == pytest.approx(0.1)
    with pytest.raises(ValueError, match="1 nights show no spread"):
        baseline_of(np.array([0.1]), LINEAR)


def test_fewer_than_the_deciding_nights_are_never_back() -> None:
    baseline = Baseline(0.0, 1.0)
    assert not is_back(np.zeros(BACK_NIGHTS - 1), baseline, LINEAR)
    assert is_back(np.r_[9.0, np.zeros(BACK_NIGHTS)], baseline, LINEAR)


@pytest.mark.parametrize(
    ("shift", "low", "high"), [(0.0, 0.96, 0.99), (2.0, 0.008, 0.018), (3.0, 0.0, 0.0002)]
)
def test_how_often_a_stream_seems_back(shift: float, low: float, high: float) -> None:
    nights = shift + np.random.default_rng(5).standard_normal((20_000, BACK_NIGHTS))
    share = np.mean([is_back(one, Baseline(0.0, 1.0), LINEAR) for one in nights])
    assert low <= share <= high


def nights_of(rate: float, count: int = 5, trials: int = 60) -> tuple[np.ndarray, np.ndarray]:
    return np.full(count, round(rate * trials)).astype(float), np.full(count, float(trials))


def test_a_rate_is_back_after_five_nights_of_the_old_one_and_not_while_it_lasts() -> None:
    assert rate_is_back(*nights_of(0.0), 0.01, 0.2)
    assert not rate_is_back(*nights_of(0.0, count=4), 0.01, 0.2)
    assert not rate_is_back(*nights_of(0.2), 0.01, 0.2)
    assert not rate_is_back(*nights_of(0.5), 0.01, 0.2)


def test_trials_that_fit_both_rates_or_none_at_all_take_nothing_back() -> None:
    assert not rate_is_back(*nights_of(0.0, trials=3), 0.01, 0.05)
    assert not rate_is_back(*nights_of(0.0, trials=0), 0.01, 0.05)


def test_a_rate_that_lasts_is_seldom_taken_back_and_the_old_one_mostly() -> None:
    rng = np.random.default_rng(5)
    trials = np.full(5, 60.0)
    lasting = [rate_is_back(rng.binomial(60, 0.05, 5).astype(float), trials, 0.01, 0.05) for _ in range(2000)]
    healed = [rate_is_back(rng.binomial(60, 0.01, 5).astype(float), trials, 0.01, 0.05) for _ in range(2000)]
    assert np.mean(lasting) < 0.02
    assert np.mean(healed) > 0.8


def test_a_stated_null_holds_again_when_five_nights_or_more_say_so_together() -> None:
    assert nights_of_the_null(np.array([3.0, -1, -1, -1, -1, -1])) == 5
    assert nights_of_the_null(np.array([3.0, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.7])) == 9
    assert nights_of_the_null(np.array([-9.0, -9, -9, -9])) is None
    assert nights_of_the_null(np.array([2.0, -1, 2, -1, 2, -1, -1])) is None
    assert nights_of_the_null(np.array([])) is None


def test_a_change_that_lasts_is_seldom_taken_for_the_null() -> None:
    x = 1 + np.random.default_rng(6).standard_normal((4000, 5))  # the alternative: N(1, 1) against N(0, 1)
    taken = [nights_of_the_null(nights - 0.5) is not None for nights in x]
    assert np.mean(taken) <= 0.01
