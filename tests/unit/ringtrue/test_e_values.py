import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import t as student

from ringtrue.e_values import (
    alarm_threshold,
    average,
    confidence_sequence,
    e_bh,
    least_t2,
    log_t_factor,
    requests_to_alarm,
)


def test_two_hundred_streams_and_one_alarm_a_year_give_the_threshold_of_the_methods() -> None:
    assert alarm_threshold(200) == 73_000
    assert alarm_threshold(200, detectors=2, per_year=0.5) == 4 * 73_000


@pytest.mark.parametrize(("streams", "detectors", "per_year"), [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0)])
def test_a_fleet_without_streams_or_tolerance_has_no_threshold(
    streams: int, detectors: int, per_year: float
) -> None:
    with pytest.raises(ValueError, match="no threshold"):
        alarm_threshold(streams, detectors=detectors, per_year=per_year)


def test_averages_leave_out_what_was_not_measured() -> None:
    found = average(np.array([[2.0, np.nan, 4.0], [np.nan, np.nan, np.nan]]))

    assert found[0] == 3
    assert np.isnan(found[1])


def test_e_bh_rejects_by_hand() -> None:
    # Of 4 at 0.1, the k largest must each be at least 40 / k: 40, 20, 13.3, 10.
    assert e_bh(np.array([25.0, 1.0, 21.0, 12.0]), 0.1).tolist() == [True, False, True, False]
    assert e_bh(np.array([39.0, 1.0, 1.0, 1.0]), 0.1).tolist() == [False] * 4
    assert e_bh(np.array([10.0, 10.0, 10.0, 10.0]), 0.1).all()


def test_e_bh_divides_a_sum_by_its_candidates() -> None:
    sums = np.array([30 * 25.0, 30 * 21.0, 30 * 1.0, 30 * 1.0])

    assert e_bh(sums, 0.1, candidates=30).tolist() == [True, True, False, False]
    assert e_bh(sums, 0.1, candidates=np.array([30, 300, 30, 30])).tolist() == [False] * 4


def test_e_bh_counts_only_measured_hypotheses() -> None:
    assert e_bh(np.array([np.nan, 10.0, np.nan]), 0.1).tolist() == [False, True, False]
    assert not e_bh(np.array([np.nan]), 0.1).any()
    assert e_bh(np.array([]), 0.1).shape == (0,)
    with pytest.raises(ValueError, match="level"):
        e_bh(np.array([1.0]), 0.0)


def test_e_bh_keeps_its_false_discovery_rate_when_all_hypotheses_move_together() -> None:
    rng = np.random.default_rng(4)
    shares = []
    for _ in range(2000):
        null = np.full(40, rng.exponential())  # the same honest e-value 40 times
        rejected = e_bh(np.concatenate([null, np.full(10, 60.0)]), 0.1)
        shares.append(rejected[:40].sum() / max(1, rejected.sum()))

    assert np.mean(shares) <= 0.1


def test_a_confidence_sequence_holds_at_all_times_at_once() -> None:
    rng = np.random.default_rng(1)
    for mean in (0.02, 0.3):
        x = rng.binomial(1, mean, (600, 800)).astype(np.float64)
        found = confidence_sequence(x, level=0.95)
        missed = ((found.low > mean) | (found.high < mean)).any(axis=1)
        assert missed.mean() <= 0.05


def test_a_confidence_sequence_narrows_with_the_spread_of_its_values() -> None:
    rng = np.random.default_rng(2)
    steady = confidence_sequence(rng.uniform(0.49, 0.51, (1, 2000)))
    wide = confidence_sequence(rng.binomial(1, 0.5, (1, 2000)).astype(np.float64))

    assert steady.high[0, -1] - steady.low[0, -1] < 0.03
    assert 0.08 < wide.high[0, -1] - wide.low[0, -1] < 0.16
    assert np.all(np.diff(wide.low[0]) >= 0)
    assert np.all(np.diff(wide.high[0]) <= 0)


@given(st.lists(st.floats(-3, 7), min_size=1, max_size=40))
def test_a_confidence_sequence_stays_inside_the_range(values: list[float]) -> None:
    found = confidence_sequence(np.array([values]), low=-3, high=7)

    assert np.all(found.low >= -3)
    assert np.all(found.high <= 7 + 1e-9)


def test_values_outside_the_stated_range_are_refused() -> None:
    with pytest.raises(ValueError, match="outside"):
        confidence_sequence(np.array([[0.2, 1.2]]))
    with pytest.raises(ValueError, match="outside"):
        confidence_sequence(np.array([[np.nan]]))


@pytest.mark.parametrize(("n1", "n2"), [(14, 1), (30, 5)])
def test_the_bayes_factor_of_a_t_has_an_expectation_of_one(n1: int, n2: int) -> None:
    n_e, nu = np.array(n1 * n2 / (n1 + n2)), np.array(n1 + n2 - 2.0)

    def expected(t: float) -> float:
        return float(np.exp(log_t_factor(np.array(t * t), n_e, nu, 9.0)) * student.pdf(t, nu))

    assert 2 * quad(expected, 0, np.inf)[0] == pytest.approx(1, abs=1e-6)


def test_the_least_t_is_the_one_that_gives_the_evidence() -> None:
    n_e, nu = np.array([5.0, 8.0, 0.4]), np.array([30.0, 60.0, 13.0])
    t2 = least_t2(n_e, nu, 9.0, 73_000)

    assert np.exp(log_t_factor(t2[:2], n_e[:2], nu[:2], 9.0)) == pytest.approx(73_000)
    assert np.isinf(t2[2])  # no shift of one night shows that much
    assert np.exp(log_t_factor(np.array(1e12), n_e[2], nu[2], 9.0)) < 73_000


def test_requests_to_alarm_are_those_of_the_methods() -> None:
    assert requests_to_alarm(0.99, 0.95, 73_000) == 272
    assert requests_to_alarm(0.99, 0.97, 73_000) == 851
    with pytest.raises(ValueError, match="no requests"):
        requests_to_alarm(0.5, 0.5, 73_000)
