"""The published methods that the benchmarks compare with, on cases worked out by hand."""

import numpy as np
import pytest

from benchmarks.rivals import b3it, lt, met, token_margins


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_lt_sets_an_unlisted_token_to_the_least_value_of_its_row() -> None:
    before = np.array([[-1.0, np.nan, -3.0]])
    after = np.array([[-1.5, -2.0, np.nan]])

    assert lt.statistic(before, after) == pytest.approx((0.5 + 1.0 + 1.0) / 3)


def test_lt_p_values_are_never_zero_and_small_for_a_shift() -> None:
    before = rng().normal(-3, 0.1, (10, 20))

    assert lt.p_value(before, before + 1.0, rng()) == pytest.approx(1 / 1001)
    assert lt.p_value(before, before.copy(), rng()) == 1.0


def test_lt_p_values_are_uniform_only_where_requests_are_independent() -> None:
    def share(correlation: float) -> float:
        generator = rng(1)
        low = 0
        for _ in range(200):
            both = [
                np.sqrt(correlation) * generator.normal(size=20)
                + np.sqrt(1 - correlation) * generator.normal(size=(10, 20))
                for _ in range(2)
            ]
            low += lt.p_value(both[0], both[1], generator, draws=99) <= 0.05
        return low / 200

    assert share(0.0) <= 0.1
    assert share(0.3) >= 0.8


def test_lts_live_rule_needs_both_twelve_sds_and_one_nat() -> None:
    quiet = 0.1 + 0.01 * rng().normal(size=20)

    assert not lt.live_alarms(np.append(quiet, 0.9)).any()
    assert lt.live_alarms(np.append(quiet, 1.1)).tolist()[-1]
    assert not lt.live_alarms(np.append(0.1 + 0.2 * np.arange(20) % 1, 1.1)).any()


def test_b3it_alarms_on_the_third_deviating_day_in_a_row() -> None:
    quiet = 0.13 + 0.005 * rng().normal(size=30)

    found = b3it.alarms(np.concatenate([quiet, [0.5, 0.5, 0.5, 0.5]]))

    assert np.flatnonzero(found).tolist() == [32, 33]
    assert not b3it.alarms(np.concatenate([quiet, [0.5, 0.5], quiet])).any()
    assert not b3it.alarms(np.concatenate([quiet - 0.1, np.full(5, 0.19)])).any()


def test_b3it_measures_total_variation() -> None:
    day, reference = np.array([[10, 0], [5, 5]]), np.array([[50, 50], [50, 50]])

    assert b3it.mean_total_variation(day, reference) == pytest.approx(0.25)


def test_met_tells_samples_of_another_distribution() -> None:
    prompts = np.repeat(np.arange(5), 10)
    one, same = (rng(seed).integers(0, 4, (50, 20)).astype(np.int32) for seed in (1, 2))
    other = rng(3).choice(4, size=(50, 20), p=[0.7, 0.1, 0.1, 0.1]).astype(np.int32)

    assert met.p_value(one, other, (prompts, prompts), rng(), draws=199) == pytest.approx(1 / 200)
    assert met.p_value(one, same, (prompts, prompts), rng(), draws=199) > 0.05


def test_margins_are_clipped_and_a_larger_mean_has_a_small_p_value() -> None:
    best, chosen = np.array([2.0, 2.0, 2.0]), np.array([2.0, 1.8, -5.0])
    honest = np.abs(rng().normal(0, 0.01, 500))

    assert token_margins.margins(best, chosen) == pytest.approx([0.0, 0.2, 0.5])
    assert token_margins.p_value(honest, honest + 0.01) < 1e-6
    assert token_margins.p_value(honest, honest) == pytest.approx(0.5)
    assert token_margins.p_value(np.zeros(5), np.zeros(5)) == 1.0
