import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.token_only.border_inputs import (
    CORRELATION_FLOOR,
    distance,
    distance_p_value,
    intra_batch_correlation,
    supported,
    violation_alarms,
    violation_e_values,
    violation_rate,
    violations,
)

THRESHOLD = 73_000.0
BORDER = np.array([[0.5, 0.48, 0.02]])  # a tie, and all other tokens


def correlated(
    rng: np.random.Generator, rate: float, n: int, correlation: float, shape: object
) -> np.ndarray:
    size = (1 - correlation) / correlation
    return rng.binomial(n, rng.beta(rate * size, (1 - rate) * size, shape))  # type: ignore[call-overload]


def test_support_follows_the_rule_of_three() -> None:
    assert supported(BORDER, 100).tolist() == [[True, True, False]]
    assert supported(BORDER, 150).tolist() == [[True, True, True]]
    with pytest.raises(ValueError, match="support no token"):
        supported(BORDER, 3)


def test_a_prompt_violates_at_most_once_a_night() -> None:
    counts = np.array([[[5, 5, 0], [0, 0, 10]], [[10, 0, 0], [5, 4, 1]], [[0, 0, 0], [0, 0, 0]]])
    support = np.array([[True, True, False]] * 2)

    assert violations(counts, support).tolist() == [1, 1, 0]


def test_the_rate_is_never_zero() -> None:
    assert violation_rate(0, 297) == pytest.approx(0.01)
    with pytest.raises(ValueError, match="violations"):
        violation_rate(1, 0)


@given(st.integers(1, 40), st.floats(1e-5, 0.5), st.floats(0.0, 0.6))
def test_the_e_value_has_expectation_one_under_its_null(
    prompts: int, rate: float, correlation: float
) -> None:
    """The null's chances are had from the e-value of a night and the alternative's, Beta(3, 1)."""
    k = np.arange(prompts + 1)
    alternative = 3 * (k + 1) * (k + 2) / ((prompts + 1) * (prompts + 2) * (prompts + 3))

    null = alternative / violation_e_values(k, np.full(prompts + 1, prompts), rate, correlation)

    assert null.sum() == pytest.approx(1, rel=1e-6)


def test_more_correlation_makes_the_same_night_weaker_evidence() -> None:
    at = [
        float(violation_e_values(np.array([8]), np.array([10]), 1e-3, rho)[0])
        for rho in (0.0, 0.01, 0.05, 0.3)
    ]

    assert at == sorted(at, reverse=True)
    assert at[2] > THRESHOLD > at[3]


def test_a_night_without_prompts_says_nothing() -> None:
    assert violation_e_values(np.array([0]), np.array([0]), 0.01, 0.05) == pytest.approx(1)


@pytest.mark.parametrize(("rate", "correlation"), [(0.0, 0.1), (0.1, 1.0)])
def test_an_impossible_null_is_refused(rate: float, correlation: float) -> None:
    with pytest.raises(ValueError, match="correlation"):
        violation_e_values(np.array([0]), np.array([1]), rate, correlation)


@pytest.mark.parametrize(("correlation", "batches"), [(0.05, 1), (0.3, 2)])
def test_a_swapped_model_is_found_by_10_requests_a_batch(correlation: float, batches: int) -> None:
    rng = np.random.default_rng(5)
    streams, nights, changed = 400, 40, 30
    violating = correlated(rng, 2e-4, 10, correlation, (streams, nights))
    violating[:, changed:] = rng.binomial(10, 0.9, (streams, nights - changed))

    found = violation_alarms(
        violating,
        np.full(violating.shape, 10),
        rate=1e-3,
        correlation=correlation,
        threshold=THRESHOLD,
    )

    assert not found.alarms[:, :changed].any()
    assert found.alarms[:, changed + batches - 1].mean() >= 0.95
    assert (found.since[:, changed + batches - 1] == changed).mean() > 0.95


@pytest.mark.parametrize("correlation", [0.05, 0.3])
def test_honest_streams_do_not_alarm(correlation: float) -> None:
    rng = np.random.default_rng(6)
    violating = correlated(rng, 1e-3, 10, correlation, (200, 365))

    found = violation_alarms(
        violating,
        np.full(violating.shape, 10),
        rate=1e-3,
        correlation=correlation,
        threshold=THRESHOLD,
    )

    assert found.alarms.any(axis=1).sum() <= 1


@pytest.mark.parametrize("correlation", [0.1, 0.3])
def test_the_correlation_of_a_batch_is_recovered(correlation: float) -> None:
    counts = correlated(np.random.default_rng(8), 0.5, 10, correlation, (60, 20))

    assert intra_batch_correlation(counts, np.full(counts.shape, 10)) == pytest.approx(correlation, abs=0.04)


def test_the_correlation_has_a_floor_until_14_nights() -> None:
    counts = np.random.default_rng(9).binomial(10, 0.5, (40, 20))
    asks = np.full(counts.shape, 10)

    assert intra_batch_correlation(counts[:13], asks[:13]) == CORRELATION_FLOOR
    assert intra_batch_correlation(counts, asks) < 0.02
    asks[1:] = 0
    assert intra_batch_correlation(counts * (asks > 0), asks) == CORRELATION_FLOOR


def test_constant_answers_do_not_show_a_correlation_of_zero() -> None:
    asks = np.full((30, 5), 10)

    assert intra_batch_correlation(asks, asks) == CORRELATION_FLOOR


def test_distance_is_the_total_variation_over_the_prompts_that_were_asked() -> None:
    p = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    counts = np.array([[[10, 0, 0], [0, 0, 10]], [[5, 5, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]])

    assert distance(counts, p)[:2] == pytest.approx([0.75, 0.0])
    assert np.isnan(distance(counts, p)[2])


@pytest.mark.parametrize("correlation", [0.05, 0.3])
def test_p_values_of_honest_nights_are_valid_and_never_zero(correlation: float) -> None:
    rng = np.random.default_rng(10)
    p = np.tile([0.5, 0.45, 0.05], (20, 1))
    size = (1 - correlation) / correlation
    found = []
    for _ in range(300):
        counts = np.stack([rng.multinomial(10, rng.dirichlet(row * size)) for row in p])
        found.append(distance_p_value(counts, p, correlation, rng, draws=199))

    assert min(found) >= 1 / 200
    assert np.mean(np.array(found) <= 0.05) <= 0.08


def test_a_shifted_night_has_the_smallest_p_value() -> None:
    p = np.tile([0.5, 0.45, 0.05], (20, 1))
    counts = np.tile([0, 0, 10], (20, 1))

    assert distance_p_value(counts, p, 0.05, np.random.default_rng(0)) == pytest.approx(1 / 1000)
    with pytest.raises(ValueError, match="nothing was asked"):
        distance_p_value(0 * counts, p, 0.05, np.random.default_rng(0))
