import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.stats import (
    bootstrap_means,
    cluster_resamples,
    clusters_needed,
    resampled_interval,
    weighted_percentiles,
)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(("level", "needed"), [(0.5, 2), (0.9, 5), (0.95, 6), (0.98, 7), (0.99, 8)])
def test_an_interval_needs_clusters_enough_for_its_level(level: float, needed: int) -> None:
    draws = np.linspace(0, 1, 100)

    assert clusters_needed(level) == needed
    assert resampled_interval(draws, needed - 1, level) is None
    assert resampled_interval(draws, needed, level) is not None


def test_each_resample_draws_as_many_clusters_as_there_are() -> None:
    counts = np.concatenate(list(cluster_resamples(12, rng(), 1_100)))

    assert counts.shape == (1_100, 12)
    assert (counts.sum(axis=1) == 12).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(12), abs=0.15)


def test_how_resamples_are_cut_into_blocks_does_not_change_them() -> None:
    whole = np.concatenate(list(cluster_resamples(5, rng(), 100, block=100)))
    cut = np.concatenate(list(cluster_resamples(5, rng(), 100, block=7)))

    assert np.array_equal(whole, cut)


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 4)), min_size=1, max_size=30).filter(
        lambda pairs: any(count for _, count in pairs)
    ),
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
def test_weighted_percentiles_are_those_of_the_repeated_values(
    pairs: list[tuple[float, int]], fractions: list[float]
) -> None:
    pairs.sort()
    values = np.array([value for value, _ in pairs])
    counts = np.array([[count for _, count in pairs]], dtype=np.int32)

    found = weighted_percentiles(values, counts, fractions)

    assert found[0] == pytest.approx(np.quantile(np.repeat(values, counts[0]), fractions), abs=1e-9)


def test_a_figure_that_some_resample_lacks_has_no_interval() -> None:
    assert resampled_interval(np.array([0.1, np.nan, 0.3]), 32) is None


def test_few_clusters_widen_the_interval_and_many_do_not() -> None:
    draws = rng().standard_normal(4_000)

    few, many = resampled_interval(draws, 8), resampled_interval(draws, 10_000)

    assert few is not None
    assert few.low is not None
    assert many is not None
    assert many.low is not None
    assert many.low == pytest.approx(np.quantile(draws, 0.01), abs=0.01)
    assert few.low < many.low


@pytest.mark.parametrize("clusters", [8, 32])
def test_the_limits_of_a_mean_over_clusters_hold_as_often_as_they_say(clusters: int) -> None:
    generator = np.random.default_rng(3)
    misses = 0
    for _ in range(300):
        means = generator.standard_normal(clusters)  # of clusters that each have an effect of their own
        draws = bootstrap_means(means[:, None], generator, 1_000)[:, 0]
        interval = resampled_interval(draws, clusters)
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        misses += not interval.low <= 0 <= interval.high

    # Nominal 2 %: 6 of 300.
    assert misses <= 14
