import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.alarms.autocorrelation import lag_one, variance_of_mean
from logprob_drift.alarms.night_detector import Metric, Rule, Scale, detect
from ringtrue.e_values import alarm_threshold

A = alarm_threshold(200)
RULE = Rule(A)
METRIC = Metric(1e-3, unit="nats")


def normal(shape: tuple[int, int], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def autocorrelated(shape: tuple[int, int], rho: float, seed: int = 1) -> np.ndarray:
    x = normal(shape, seed)
    for night in range(1, shape[1]):
        x[:, night] = rho * x[:, night - 1] + np.sqrt(1 - rho**2) * x[:, night]
    return x


def shifted(by: float, *, before: int = 14, after: int = 30, streams: int = 60, seed: int = 3) -> np.ndarray:
    x = normal((streams, before + after), seed)
    x[:, before:] += by
    return x


def test_a_year_of_a_mixed_honest_fleet_stays_within_its_budget() -> None:
    rng = np.random.default_rng(11)
    fleet = np.concatenate(
        [
            normal((100, 365), 2),
            rng.standard_t(5, (100, 365)),
            autocorrelated((100, 365), 0.3),
        ]
    )
    skewed = rng.lognormal(0, 0.6, (100, 365))

    alarms = (detect(fleet, METRIC, RULE).first >= 0).sum()
    alarms += (detect(skewed, Metric(1e-3, Scale.LOG), RULE).first >= 0).sum()

    assert alarms <= 2  # two fleet-years; budget: one each


@pytest.mark.parametrize(("by", "nights"), [(8, 4), (5, 8), (-8, 4)])
def test_a_shift_is_seen_within_the_stated_nights_and_dated(by: float, nights: int) -> None:
    found = detect(shifted(by), METRIC, RULE)

    assert np.median(found.first - 14 + 1) <= nights
    assert np.all(found.first > 14)  # the guard asks for two nights
    assert (np.abs(found.since - 14) <= 1).mean() > 0.95


def test_without_the_guard_one_night_would_alarm_and_with_it_never_does() -> None:
    x = normal((50, 90), 5)
    x[:, 60] = 40

    found = detect(x, METRIC, RULE)

    assert np.nanmax(found.evidence[:, 60]) > A
    assert not found.alarm.any()


def test_two_nights_apart_are_not_one_change() -> None:
    x = normal((20, 60), 6)
    x[:, [30, 45]] = -1000

    assert not detect(x, METRIC, RULE).alarm.any()


def test_an_alarm_stands_until_it_is_accepted_and_then_the_change_is_the_baseline() -> None:
    x = shifted(8, after=80)
    found = detect(x, METRIC, RULE)
    accepted = detect(x, METRIC, RULE, accepted=found.since)

    assert found.alarm[:, -1].all()
    assert not accepted.alarm.any()
    assert np.isnan(accepted.evidence[:, 20]).all()
    assert np.isfinite(accepted.evidence[:, 40]).all()


def test_a_second_change_is_seen_after_the_first_was_accepted() -> None:
    x = shifted(8, after=80)
    x[:, 60:] -= 8
    accepted = np.full(60, 14)

    found = detect(x, METRIC, RULE, accepted=accepted)

    assert (np.abs(found.since - 60) <= 1).all()


def test_the_past_does_not_depend_on_what_follows() -> None:
    x = shifted(6, after=60)

    whole, part = detect(x, METRIC, RULE), detect(x[:, :40], METRIC, RULE)

    assert np.allclose(whole.evidence[:, :40], part.evidence, equal_nan=True)
    assert np.allclose(whole.guarded[:, :40], part.guarded, equal_nan=True)
    assert np.array_equal(whole.start[:, :40], part.start)
    assert np.allclose(whole.detectable[:, :40], part.detectable, equal_nan=True)


def test_missing_nights_are_skipped_and_the_start_is_named_by_its_own_night() -> None:
    x = shifted(8, streams=30)
    gaps = np.insert(x, [5, 5, 16], np.nan, axis=1)

    whole, with_gaps = detect(x, METRIC, RULE), detect(gaps, METRIC, RULE)

    measured = ~np.isnan(gaps[0])
    assert np.allclose(with_gaps.evidence[:, measured], whole.evidence, equal_nan=True)
    assert np.isnan(with_gaps.evidence[:, ~measured]).all()
    assert np.median(with_gaps.since) == 16
    assert with_gaps.unknown(0, 18) == "nothing was measured this night"


def test_evidence_does_not_depend_on_unit_or_level() -> None:
    x = shifted(4)

    plain = detect(x, Metric(1e-9), RULE)
    other = detect(1e6 + 50 * x, Metric(1e-9), RULE)

    assert np.allclose(plain.evidence, other.evidence, rtol=1e-4, equal_nan=True)
    assert np.allclose(50 * plain.detectable, other.detectable, rtol=1e-4, equal_nan=True)


@pytest.mark.parametrize("level", [0.0, 0.1, -3e8])
def test_a_constant_series_never_alarms(level: float) -> None:
    found = detect(np.full((2, 120), level), METRIC, RULE)

    assert not found.alarm.any()
    assert np.isfinite(found.evidence[:, 20:]).all()
    assert (found.evidence[:, 20:] < 30).all()


def test_a_constant_series_that_moves_by_less_than_its_resolution_stays_quiet_and_else_alarms() -> None:
    x = np.full((2, 60), 0.5)
    x[0, 30:] += 0.1 * METRIC.resolution
    x[1, 30:] += 20 * METRIC.resolution

    found = detect(x, METRIC, RULE)

    assert not found.alarm[0].any()
    assert found.alarm[1].any()
    assert found.since[1] == 30


@pytest.mark.parametrize("nights", [0, 1, 14])
def test_too_few_nights_are_unknown_with_the_number_that_is_missing(nights: int) -> None:
    found = detect(normal((1, nights)), METRIC, RULE)

    assert np.isnan(found.evidence).all()
    assert not found.alarm.any()
    if nights:
        assert (
            found.unknown(0, nights - 1)
            == f"{nights} of 15 nights measured: a change needs 14 nights before it"
        )


def test_a_judged_night_has_no_reason() -> None:
    assert detect(normal((1, 20)), METRIC, RULE).unknown(0, 19) is None


def test_a_night_that_comes_twice_or_out_of_order_is_refused() -> None:
    x = normal((1, 3))

    with pytest.raises(ValueError, match="night 8 comes twice"):
        detect(x, METRIC, RULE, nights=[7, 8, 8])
    with pytest.raises(ValueError, match="night 6 comes after night 8"):
        detect(x, METRIC, RULE, nights=[7, 8, 6])
    with pytest.raises(ValueError, match="2 nights named, 3 given"):
        detect(x, METRIC, RULE, nights=[7, 8])


def test_values_that_cannot_be_judged_are_refused() -> None:
    with pytest.raises(ValueError, match="infinite"):
        detect(np.array([[np.inf]]), METRIC, RULE)
    with pytest.raises(ValueError, match="negative"):
        detect(np.array([[-1.0]]), Metric(1e-3, Scale.LOG), RULE)
    with pytest.raises(ValueError, match="resolution"):
        Metric(0.0)
    with pytest.raises(ValueError, match="8 baseline nights"):
        Rule(A, baseline=7)


def test_the_log_scale_accepts_zero_and_sees_a_ratio() -> None:
    x = np.random.default_rng(4).lognormal(0, 0.3, (30, 60))
    x[:, 5] = 0.0
    x[:, 40:] *= 4

    found = detect(x, Metric(1e-2, Scale.LOG), RULE)

    assert np.median(found.since) == 40


@pytest.mark.parametrize("nights", [44, 90])
@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_the_detectable_shift_would_be_in_alarm_about_nine_times_in_ten(nights: int, rho: float) -> None:
    x = autocorrelated((600, nights), rho, 8)
    honest = detect(x, METRIC, RULE)

    x[:, nights - 30 :] += honest.detectable_sd[:, -1:]
    found = detect(x, METRIC, RULE)

    in_alarm = (found.evidence[:, -1] >= A) & (found.guarded[:, -1] >= A)
    assert 0.84 <= in_alarm.mean() <= 0.96
    in_sds = honest.detectable[:, -1] / honest.detectable_sd[:, -1]
    assert np.median(in_sds) == pytest.approx(1, abs=0.1)  # a night's SD is 1 here


def test_no_shift_is_detectable_while_the_guard_leaves_no_night() -> None:
    found = detect(normal((1, 20)), METRIC, RULE)

    assert np.isinf(found.detectable[0, 14])
    assert np.isfinite(found.detectable[0, 16])
    assert np.all(np.diff(found.detectable_sd[0, 16:]) < 0)


def test_the_detectable_shift_of_a_logged_metric_is_in_its_unit() -> None:
    x = np.random.default_rng(4).lognormal(np.log(200), 0.1, (200, 60))

    found = detect(x, Metric(1.0, Scale.LOG, "tokens"), RULE)

    factor = 1 + found.detectable[:, -1] / 200
    expected = np.exp(found.detectable_sd[:, -1] * 0.1)
    assert np.median(factor / expected) == pytest.approx(1, abs=0.05)


@given(
    st.lists(
        st.one_of(st.just(np.nan), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0])), min_size=1, max_size=60
    )
)
def test_any_series_is_judged_without_a_crash(values: list[float]) -> None:
    found = detect(np.array([values]), METRIC, Rule(A, baseline=8))

    judged = ~np.isnan(found.evidence)
    assert np.array_equal(judged, ~np.isnan(values)[None] & (found.observed > 8))
    assert (found.evidence[judged] >= 0).all()
    assert (found.start[judged] >= 8).all()
    assert (found.start[~judged] == -1).all()


def test_the_variance_of_a_mean_is_that_of_simulated_nights() -> None:
    x = autocorrelated((20_000, 5), 0.4)

    assert variance_of_mean(np.array(0.4), 5) == pytest.approx(x.mean(axis=1).var(), rel=0.03)
    assert variance_of_mean(np.array(0.4), 1) == pytest.approx(1)
    assert variance_of_mean(np.array(0.0), 7) == pytest.approx(1 / 7)


def test_the_lag_one_correlation_is_nearly_unbiased_and_floored_for_short_series() -> None:
    rho = lag_one(autocorrelated((2000, 60), 0.6))

    assert rho[:, -1].mean() == pytest.approx(0.6, abs=0.02)
    assert rho[:, :29].min() == 0.3
    assert lag_one(normal((500, 60)))[:, -1].min() == 0.0
    assert lag_one(np.full((1, 40), 7.0))[0, -1] < 0.05
