import numpy as np
import pytest
from scipy.stats import t

from logprob_drift.studentized import mean_limits


def rng(seed: int = 2) -> np.random.Generator:
    return np.random.default_rng(seed)


def limits(values: np.ndarray, level: float = 0.98) -> tuple[float | None, float | None]:
    (found,) = mean_limits(values[:, None], np.ones_like(values), rng(), level)
    assert found is not None
    return found.low, found.high


def test_normal_values_have_the_limits_of_students_t() -> None:
    values = rng(1).standard_normal(200)
    reach = t.ppf(0.99, 199) * values.std(ddof=1) / np.sqrt(200)

    assert limits(values) == pytest.approx((values.mean() - reach, values.mean() + reach), abs=0.2 * reach)


def test_values_skewed_to_the_left_have_a_lower_limit_further_away() -> None:
    values = -rng(1).lognormal(0, 1, 40)
    low, high = limits(values)

    assert low is not None
    assert high is not None
    assert values.mean() - low > 1.5 * (high - values.mean())


def test_a_mean_per_token_weighs_prompts_by_their_tokens() -> None:
    tokens = np.tile([1.0, 9.0], 20)
    (found,) = mean_limits((2 * tokens)[:, None], tokens, rng(), 0.98)

    assert found is not None
    assert (found.low, found.high) == pytest.approx((2, 2))


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0])
def test_equal_values_have_themselves_as_limits(value: float) -> None:
    assert limits(np.full(30, value)) == pytest.approx((value, value))


def test_a_single_value_among_equal_ones_leaves_its_side_unbounded() -> None:
    values = np.zeros(16)
    values[0] = 1.0
    low, high = limits(values)

    assert low is not None
    assert low <= 0
    assert high is None


def test_too_few_prompts_for_the_level_have_no_limits() -> None:
    assert mean_limits(np.ones((6, 2)), np.ones(6), rng(), 0.98) == (None, None)


@pytest.mark.parametrize("sd", [0.3, 1.0])
def test_limits_hold_about_as_often_as_they_say(sd: float) -> None:
    drawn = -rng(5).lognormal(-sd * sd / 2, sd, (32, 1_000))
    found = mean_limits(drawn, np.ones(32), rng(), 0.9)
    above = np.mean([one is not None and one.low is not None and one.low > -1 for one in found])

    assert above <= (0.07 if sd < 1 else 0.11)
