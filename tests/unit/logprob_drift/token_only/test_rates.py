import numpy as np
import pytest

from logprob_drift.token_only.rates import Count, Rate, compounded, count_columns, judge_rates, rate_of
from ringtrue.records import State

THRESHOLD = 73_000.0


def counts(rng: np.random.Generator, rate: float, nights: int, n: int = 60) -> list[Count | None]:
    return [Count(int(k), n) for k in rng.binomial(n, rate, nights)]


def test_a_rate_of_nothing_is_not_zero() -> None:
    assert rate_of(Count(0, 0)) == Rate(None, None, 0)
    assert rate_of(Count(0, 10)).value == 0


def test_a_rate_has_its_wilson_interval() -> None:
    rate = rate_of(Count(1, 60))

    assert rate.value == pytest.approx(1 / 60)
    assert rate.interval is not None
    assert rate.interval.low == pytest.approx(0.0030, abs=2e-4)
    assert rate.interval.high == pytest.approx(0.0886, abs=2e-4)


def test_trouble_compounds_with_its_interval() -> None:
    step = rate_of(Count(90, 100))

    agent = compounded(step, 15)

    assert agent.value == pytest.approx(0.206, abs=1e-3)
    assert step.interval is not None
    assert agent.interval is not None
    assert agent.interval.low == pytest.approx((step.interval.low or 0) ** 15)
    assert agent.interval.low < agent.value < (agent.interval.high or 0)
    assert compounded(rate_of(Count(0, 0)), 15).value is None
    with pytest.raises(ValueError, match="0 steps"):
        compounded(step, 0)


def test_a_missing_night_is_no_trial() -> None:
    events, trials = count_columns([[Count(1, 5), None]])

    assert events.tolist() == [[1, 0]]
    assert trials.tolist() == [[5, 0]]


def test_more_failures_are_worse_and_dated() -> None:
    rng = np.random.default_rng(0)

    night = judge_rates([*counts(rng, 0.01, 30), *counts(rng, 0.2, 12)], THRESHOLD)

    assert night.state is State.WORSE
    assert night.since is not None
    assert abs(night.since - 30) <= 2
    assert night.before == pytest.approx(0.01, abs=0.02)
    assert night.after == pytest.approx(0.2, abs=0.1)
    assert night.e_value is not None
    assert night.e_value >= THRESHOLD


def test_fewer_failures_are_changed_only() -> None:
    rng = np.random.default_rng(1)
    series = [*counts(rng, 0.3, 30), *counts(rng, 0.02, 20)]

    assert judge_rates(series, THRESHOLD).state is State.CHANGED
    turned = [Count(c.n - c.events, c.n) for c in series if c is not None]
    assert judge_rates(turned, THRESHOLD, failures=False).state is State.CHANGED


@pytest.mark.parametrize("nights", [0, 1, 14])
def test_too_few_nights_are_unknown_with_the_number_needed(nights: int) -> None:
    night = judge_rates(counts(np.random.default_rng(2), 0.5, nights), THRESHOLD)

    assert night.state is State.UNKNOWN
    assert f"{nights} of 15 nights" in night.reason


def test_an_honest_stream_is_ok_and_says_what_it_could_have_seen() -> None:
    night = judge_rates(counts(np.random.default_rng(3), 0.01, 60), THRESHOLD)

    assert night.state is State.OK
    assert night.detectable is not None
    assert 0.02 < night.detectable < 0.2


def test_constant_rates_are_ok() -> None:
    for events in (0, 60):
        assert judge_rates([Count(events, 60)] * 60, THRESHOLD).state is State.OK


def test_a_last_night_without_answers_is_unknown() -> None:
    night = judge_rates([*counts(np.random.default_rng(4), 0.01, 40), None], THRESHOLD)

    assert (night.state, night.rate.value) == (State.UNKNOWN, None)


def test_a_handful_of_answers_can_show_nothing() -> None:
    night = judge_rates([Count(0, 1)] * 16, THRESHOLD)

    assert (night.state, night.detectable) == (State.UNKNOWN, None)


@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_honest_streams_of_clustered_answers_do_not_alarm(rate: float) -> None:
    rng = np.random.default_rng(6)
    rates = rng.beta(rate * 49, (1 - rate) * 49, (60, 90))  # correlation 0.02
    states = [
        judge_rates([Count(int(k), 60) for k in rng.binomial(60, stream)], THRESHOLD).state
        for stream in rates
    ]

    assert all(state is State.OK for state in states)
