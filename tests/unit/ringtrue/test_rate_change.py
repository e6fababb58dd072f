import numpy as np
import pytest

from ringtrue.e_values import alarm_threshold
from ringtrue.rate_change import detectable_rate, rate_changes

A = alarm_threshold(200)


def counts(rate: float, rho: float, shape: tuple[int, int], seed: int, size: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if rho == 0:
        return rng.binomial(size, rate, shape).astype(np.float64)
    beta = (1 - rho) / rho
    return rng.binomial(size, rng.beta(rate * beta, (1 - rate) * beta, shape)).astype(np.float64)


@pytest.mark.parametrize("rho", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_honest_rates_keep_to_their_budget_with_correlated_trials(rate: float, rho: float) -> None:
    events = counts(rate, rho, (100, 200), 3)

    found = rate_changes(events, np.full_like(events, 60), A)

    assert (found.first >= 0).sum() <= 1


def test_a_change_is_seen_with_the_night_it_began_and_both_rates() -> None:
    events = counts(0.05, 0.0, (40, 60), 1)
    events[:, 30:] = counts(0.25, 0.0, (40, 30), 2)

    found = rate_changes(events, np.full_like(events, 60), A)

    assert np.all(found.first >= 31)  # the guard asks for two nights
    assert np.median(found.first) <= 33
    assert np.median(found.since) == 30
    assert np.median(found.before[:, 40]) == pytest.approx(0.05, abs=0.02)
    assert np.median(found.after[:, 40]) == pytest.approx(0.25, abs=0.05)
    assert np.all(found.alarm[:, -1])  # it stands


def test_one_bad_night_never_alarms() -> None:
    events = counts(0.01, 0.0, (50, 60), 4)
    events[:, 40] = 60

    found = rate_changes(events, np.full_like(events, 60), A)

    assert np.nanmax(found.evidence[:, 40]) > A
    assert not found.alarm.any()


def test_the_past_does_not_depend_on_what_follows() -> None:
    events = counts(0.1, 0.05, (5, 80), 5)
    trials = np.full_like(events, 60)

    whole, part = rate_changes(events, trials, A), rate_changes(events[:, :50], trials[:, :50], A)

    assert np.allclose(whole.evidence[:, :50], part.evidence, equal_nan=True)


def test_nights_without_trials_are_not_judged_and_change_nothing() -> None:
    events, trials = counts(0.1, 0.0, (4, 40), 6), np.full((4, 40), 60.0)
    gaps = np.insert(events, 20, 0.0, axis=1), np.insert(trials, 20, 0.0, axis=1)

    whole, with_gap = rate_changes(events, trials, A), rate_changes(*gaps, A)

    assert np.isnan(with_gap.evidence[:, 20]).all()
    assert np.allclose(with_gap.evidence[:, 21:30], whole.evidence[:, 20:29])


def test_too_few_nights_and_no_trials_at_all_are_not_judged() -> None:
    assert np.isnan(rate_changes(np.ones((1, 1)), np.full((1, 1), 9.0), A).evidence).all()
    assert np.isnan(rate_changes(np.zeros((2, 60)), np.zeros((2, 60)), A).evidence).all()


def test_a_rate_that_is_always_zero_or_one_gives_no_alarm() -> None:
    trials = np.full((2, 120), 60.0)

    found = rate_changes(np.array([[0.0], [60.0]]) + 0 * trials, trials, A)

    assert not found.alarm.any()
    assert np.isfinite(found.evidence[:, 20:]).all()


def test_an_accepted_change_begins_a_new_baseline() -> None:
    events = counts(0.05, 0.0, (10, 80), 7)
    events[:, 30:] = counts(0.5, 0.0, (10, 50), 8)
    trials = np.full_like(events, 60)
    before = rate_changes(events, trials, A)

    after = rate_changes(events, trials, A, accepted=before.since)

    assert before.alarm[:, -1].all()
    assert not after.alarm.any()


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="events"):
        rate_changes(np.array([[3.0]]), np.array([[2.0]]), A)
    with pytest.raises(ValueError, match="events"):
        rate_changes(np.array([[np.nan]]), np.array([[2.0]]), A)


def test_the_detectable_rate_is_seen_about_half_of_the_time_and_grows_with_correlation() -> None:
    rate = detectable_rate(0.05, 30 * 60, 10 * 60, A)
    assert rate is not None
    events = counts(0.05, 0.0, (200, 40), 9)
    events[:, 30:] = counts(rate, 0.0, (200, 10), 10)
    seen = np.nan_to_num(rate_changes(events, np.full_like(events, 60), A).evidence[:, -1]) >= A

    assert 0.4 <= seen.mean() <= 0.85  # other candidate changes add to the sum
    correlated = detectable_rate(0.05, 30 * 60, 10 * 60, A, design_effect=4)
    assert correlated is not None
    assert correlated > rate
    assert detectable_rate(0.05, 60, 3, A) is None
