import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.stats import bootstrap_means, mean_interval, ratio_interval, smallest_value_limit, wilson


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # Newcombe 1998, table I, method 3
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_equals_the_published_intervals(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson(successes, trials)

    assert interval is not None
    assert interval.low == pytest.approx(low, abs=5e-5)
    assert interval.high == pytest.approx(high, abs=5e-5)


def test_a_rate_of_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None


def test_more_successes_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="3 successes in 2 trials"):
        wilson(3, 2)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_rate_and_stays_a_probability(case: tuple[int, int]) -> None:
    successes, trials = case
    interval = wilson(successes, trials, 0.99)

    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    assert 0 <= interval.low <= successes / trials <= interval.high <= 1


def test_one_prompt_has_no_spread_and_so_no_interval() -> None:
    assert mean_interval(np.array([0.3]), rng()) is None
    assert ratio_interval(np.array([0.3]), np.array([0.1]), rng()) is None


def test_bootstrap_means_keep_columns_together() -> None:
    values = np.column_stack([np.arange(40.0), 2 * np.arange(40.0)])

    means = bootstrap_means(values, rng(), 1100)

    assert means.shape == (1100, 2)
    assert np.allclose(means[:, 1], 2 * means[:, 0])


def test_a_constant_ratio_has_an_interval_without_width() -> None:
    bottom = np.linspace(0.001, 0.01, 64)

    interval = ratio_interval(3 * bottom, bottom, rng())

    assert interval is not None
    assert interval.low == pytest.approx(3)
    assert interval.high == pytest.approx(3)


def test_a_bottom_of_zero_has_no_ratio() -> None:
    assert ratio_interval(np.ones(64), np.zeros(64), rng()) is None


def test_the_lower_limit_of_a_mean_fails_no_more_often_than_it_says() -> None:
    generator = np.random.default_rng(1)
    misses = 0
    for _ in range(400):
        interval = mean_interval(generator.exponential(1.0, 64), generator)
        assert interval is not None
        assert interval.low is not None
        misses += interval.low > 1.0

    # Nominal 1 %; a skewed sample makes the lower side the conservative one.
    assert misses <= 8


@pytest.mark.parametrize("count", [4, 8, 15])
def test_the_limit_by_the_smallest_value_holds_for_a_heavy_tail(count: int) -> None:
    generator = np.random.default_rng(2)
    draws = generator.pareto(1.2, (4000, count))
    mean = 1 / (1.2 - 1)

    misses = sum(smallest_value_limit(row) > mean for row in draws)

    assert misses <= 0.01 * 4000


def test_the_limit_by_the_smallest_value_needs_values_that_are_not_negative() -> None:
    with pytest.raises(ValueError, match="none negative"):
        smallest_value_limit(np.array([0.1, -0.1]))
    with pytest.raises(ValueError, match="at least one"):
        smallest_value_limit(np.array([]))
