import numpy as np
import pytest

from logprob_drift.context_curve import Row, missing, trace
from logprob_drift.night import BUCKET_NEEDS, FEW_NEED, POOL_NEEDS, TOLERANCE, gross_limit, one_bucket, pooled
from ringtrue.records import State


def rng(seed: int = 5) -> np.random.Generator:
    return np.random.default_rng(seed)


def honest_floor(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(np.log(0.0012), 0.9, count)


def test_an_endpoint_at_the_floor_is_ok_and_says_what_it_could_have_seen() -> None:
    f = honest_floor(64)
    night = pooled(f * rng().lognormal(0, 0.3, 64), f, rng())

    assert night.state is State.OK
    assert night.detectable is not None
    assert 1.5 * f.mean() < night.detectable < 3 * f.mean()


def test_the_detectable_effect_is_the_least_that_changes_the_state() -> None:
    f = honest_floor(64)
    d = f * rng().lognormal(0, 0.3, 64)
    night = pooled(d, f, rng())
    assert night.detectable is not None
    assert night.mean_d is not None
    scale = night.detectable / night.mean_d

    assert pooled(1.02 * scale * d, f, rng()).state is State.CHANGED
    assert pooled(0.98 * scale * d, f, rng()).state is State.OK


def test_three_times_the_floor_is_changed() -> None:
    f = honest_floor(64)

    night = pooled(3 * f, f, rng())

    assert night.state is State.CHANGED
    assert night.ratio is not None
    assert night.ratio.low == pytest.approx(3)


def test_beyond_the_tolerance_is_worse() -> None:
    f = honest_floor(64)

    assert pooled(300 * f, f, rng()).state is State.WORSE


def test_a_mean_beyond_the_tolerance_by_luck_alone_is_not_worse() -> None:
    d = np.full(64, 1e-4)
    d[0] = 2.0

    night = pooled(d, np.full(64, 1e-4), rng())

    assert night.mean_d is not None
    assert night.mean_d > TOLERANCE
    assert night.state is not State.WORSE


def test_a_floor_of_zero_makes_any_difference_a_change() -> None:
    zeros = np.zeros(64)

    assert pooled(zeros, zeros, rng()).state is State.OK
    assert pooled(zeros + 1e-6, zeros, rng()).state is State.CHANGED


@pytest.mark.parametrize("count", [0, 1, POOL_NEEDS - 1])
def test_too_few_prompts_are_unknown_and_say_how_many_are_needed(count: int) -> None:
    f = honest_floor(count)
    night = pooled(300 * f, f, rng())

    assert night.state is State.UNKNOWN
    assert night.n + missing(night) == POOL_NEEDS


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="3 divergences beside 2 floors"):
        pooled(np.zeros(3), np.zeros(2), rng())


def test_a_few_long_prompts_show_only_a_fault_that_all_of_them_show_grossly() -> None:
    f = honest_floor(FEW_NEED)
    gross = gross_limit(honest_floor(92) / 10)

    assert gross < 0.01
    assert one_bucket(np.full(FEW_NEED, 2 * gross), f, gross, rng()).state is State.CHANGED
    assert one_bucket(np.full(FEW_NEED, 3.0), f, gross, rng()).state is State.WORSE
    assert one_bucket(np.array([3.0, 3.0, 3.0, 0.9 * gross]), f, gross, rng()).state is State.UNKNOWN
    assert one_bucket(f, f, gross, rng()).detectable == gross


def test_a_bucket_of_sixteen_is_judged_by_its_ratio() -> None:
    f = honest_floor(BUCKET_NEEDS)

    assert one_bucket(f, f, 1.0, rng()).state is State.OK
    assert one_bucket(4 * f, f, 1.0, rng()).state is State.CHANGED


def rows(factor: dict[int, float], counts: dict[int, int], seed: int = 0) -> list[Row]:
    generator = np.random.default_rng(seed)
    return [
        Row(length, float(f * factor.get(length, 1.0) * generator.lognormal(0, 0.2)), float(f))
        for length, count in counts.items()
        for f in honest_floor(count, seed=length)
    ]


COUNTS = {32: 64, 128: 24, 512: 16, 2048: 4}


def test_an_honest_curve_has_no_onset_and_leaves_nothing_open() -> None:
    curve = trace(rows({}, COUNTS), list(COUNTS), rng())

    assert curve.onset is None
    assert curve.below.state is State.OK
    assert curve.below.n == 108
    assert curve.open == ()
    assert not curve.everywhere


def test_a_fault_beyond_a_length_has_its_onset_there_and_the_rest_is_ok() -> None:
    curve = trace(rows({2048: 3000.0}, COUNTS), list(COUNTS), rng())

    assert curve.onset == 2048
    assert curve.beyond is not None
    assert curve.beyond.night.state is State.WORSE
    assert curve.below.state is State.OK
    assert curve.below.n == 104


def test_the_onset_is_the_first_of_several_faulty_lengths() -> None:
    curve = trace(rows({512: 300.0, 2048: 3000.0}, COUNTS), list(COUNTS), rng())

    assert curve.onset == 512
    assert curve.below.n == 88


def test_a_fault_at_every_length_has_no_onset() -> None:
    curve = trace(rows(dict.fromkeys(COUNTS, 300.0), COUNTS), list(COUNTS), rng())

    assert curve.onset is None
    assert curve.everywhere
    assert curve.below.state is State.WORSE


def test_a_fault_that_longer_prompts_do_not_show_is_no_onset() -> None:
    curve = trace(rows({128: 300.0}, COUNTS), list(COUNTS), rng())

    assert curve.onset is None
    assert not curve.everywhere


def test_a_length_without_answers_stays_open() -> None:
    without = {length: count for length, count in COUNTS.items() if length != 2048}

    curve = trace(rows({}, without), list(COUNTS), rng())

    assert [bucket.length for bucket in curve.open] == [2048]


def test_a_length_where_only_some_prompts_are_gross_stays_open() -> None:
    some = [*rows({}, {32: 64}), *(Row(2048, d, 0.001) for d in (3.0, 3.0, 0.001, 0.001))]

    curve = trace(some, [32, 2048], rng())

    assert [(bucket.length, bucket.gross) for bucket in curve.open] == [(2048, 2)]


RARE = {32: 64, 128: 24, 512: 16, 2048: 1}


def earlier(*least: float) -> dict[int, list[Row]]:
    return {2048: [Row(2048, d, 0.001) for d in least]}


def test_prompts_that_take_turns_show_a_gross_fault_once_four_nights_have_asked_them() -> None:
    faulty = rows({2048: 3000.0}, RARE)

    third = trace(faulty, list(RARE), rng(), earlier=earlier(3.0, 3.0))
    fourth = trace(faulty, list(RARE), rng(), earlier=earlier(3.0, 3.0, 3.0))

    assert third.onset is None
    assert [bucket.length for bucket in third.open] == [2048]
    assert fourth.onset == 2048
    assert fourth.beyond is not None
    assert (fourth.beyond.night.n, fourth.beyond.nights) == (4, 4)
    assert fourth.beyond.night.state is State.WORSE


def test_nights_before_a_fault_began_leave_a_turning_length_open_and_are_then_forgotten() -> None:
    faulty = rows({2048: 3000.0}, RARE)

    second = trace(faulty, list(RARE), rng(), earlier=earlier(0.001, 0.001, 3.0))
    later = trace(faulty, list(RARE), rng(), earlier=earlier(0.001, 0.001, 3.0, 3.0, 3.0))

    assert [(bucket.length, bucket.gross) for bucket in second.open] == [(2048, 2)]
    assert later.onset == 2048


def test_earlier_nights_say_nothing_of_a_length_that_was_not_measured_tonight() -> None:
    without = {length: count for length, count in RARE.items() if length != 2048}

    curve = trace(rows({}, without), list(RARE), rng(), earlier=earlier(3.0, 3.0, 3.0))

    assert [(bucket.length, bucket.night.n, bucket.nights) for bucket in curve.open] == [(2048, 0, 1)]


def test_earlier_nights_are_not_needed_where_one_night_has_enough() -> None:
    curve = trace(rows({}, COUNTS), list(COUNTS), rng(), earlier=earlier(3.0, 3.0, 3.0))

    assert curve.open == ()
    assert curve.onset is None
    assert curve.below.n == 108


def test_with_few_prompts_in_all_a_bucket_can_still_show_a_change() -> None:
    curve = trace(rows({32: 300.0}, {32: 20}), [32], rng())

    assert curve.below.state is State.WORSE
    assert trace(rows({}, {32: 20}), [32], rng()).below.state is State.UNKNOWN


def test_the_slope_is_that_of_log_divergence_against_log_length() -> None:
    made = [Row(length, 0.001 * length**0.5, 0.001) for length in (32, 128, 512) for _ in range(4)]

    assert trace(made, [32, 128, 512], rng()).slope == pytest.approx(0.5)
    assert trace(made[:4], [32], rng()).slope is None


def test_honest_nights_alarm_far_less_often_than_one_in_a_hundred() -> None:
    alarms = 0
    for night in range(200):
        generator = np.random.default_rng([9, night])
        made = [
            Row(length, float(f * generator.lognormal(0, 0.5)), float(f))
            for length, count in COUNTS.items()
            for f in generator.lognormal(np.log(0.0012), 0.9, count)
        ]
        curve = trace(made, list(COUNTS), generator)
        changed = [b for b in curve.buckets if b.night.state in (State.CHANGED, State.WORSE)]
        alarms += bool(changed) or curve.below.state is not State.OK

    assert alarms <= 1
