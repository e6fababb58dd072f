import numpy as np
import pytest

from logprob_drift.alarms.restarts import sum_over_starts


def test_the_sum_is_that_of_all_products_that_end_tonight() -> None:
    e = np.array([[2.0, 3.0, 0.5]])

    found = sum_over_starts(e)

    assert found.m[0] == pytest.approx([2, 2 * 3 + 3, 2 * 3 * 0.5 + 3 * 0.5 + 0.5])
    assert found.since[0].tolist() == [0, 0, 0]
    assert found.starts.tolist() == [1, 2, 3]


def test_a_change_after_quiet_nights_is_dated_by_its_own_start() -> None:
    found = sum_over_starts(np.array([[0.1] * 40 + [50.0, 50.0]]))

    assert found.since[0, -1] == 40
    assert found.m[0, -1] == pytest.approx(2500 + 50 + 250 / (1 - 0.1), rel=0.01)


def test_only_the_last_starts_are_summed() -> None:
    assert sum_over_starts(np.ones((1, 100)), candidates=30).m[0, -1] == pytest.approx(30)


def test_a_night_without_a_measurement_changes_nothing_but_adds_a_start() -> None:
    found = sum_over_starts(np.array([[4.0, np.nan]]))

    assert found.m[0] == pytest.approx([4, 5])


def test_streams_do_not_touch_one_another() -> None:
    e = np.random.default_rng(0).gamma(1.0, 1.0, (3, 20))

    both = sum_over_starts(e).m

    assert both[1] == pytest.approx(sum_over_starts(e[1:2]).m[0])


def test_huge_evidence_does_not_overflow() -> None:
    assert np.isfinite(sum_over_starts(np.full((1, 60), 1e300)).m).all()


def test_a_negative_e_value_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        sum_over_starts(np.array([[-1.0]]))
