from __future__ import annotations

import numpy as np
import pytest

from evals.served.sample import NEEDED, judge_divergences, judge_pairs, side_of_median
from logprob_drift.night import RATIO
from ringtrue.records import State

RNG_SEED = 5


def _judge(d: list[float], f: list[float]):
    return judge_divergences(np.array(d), np.array(f), np.random.default_rng(RNG_SEED))


def test_all_within_the_floor_is_trusted_from_seven_sequences_on() -> None:
    floor = [0.001] * NEEDED
    assert _judge([0.0009] * NEEDED, floor).state is State.OK
    few = _judge([0.0009] * (NEEDED - 1), floor[1:])
    assert (few.state, few.needed) == (State.UNKNOWN, NEEDED)


def test_a_server_at_its_floor_of_zero_is_trusted_only_if_it_is_exact() -> None:
    assert _judge([1e-9] * 8, [0.0] * 8).state is State.OK
    assert _judge([1e-5] * 8, [0.0] * 8).state is State.CHANGED


def test_a_fault_too_small_for_the_rule_of_one_night_is_refused_by_the_sign_test() -> None:
    beyond = _judge([0.003] * 8, [0.001] * 8)  # less than 10 x the floor
    assert (beyond.state, beyond.within) == (State.CHANGED, 0)


def test_low_bits_are_worse() -> None:
    assert _judge([0.4] * 8, [0.001] * 8).state is State.WORSE


def test_one_grossly_wrong_sequence_is_enough() -> None:
    assert _judge([0.0009] * 15 + [0.05], [0.001] * 16).state is State.CHANGED


def test_what_lies_between_is_unknown_and_says_how_many_would_tell() -> None:
    mixed = _judge([0.0009] * 7 + [0.0017], [0.001] * 8)
    assert mixed.state is State.UNKNOWN
    assert mixed.needed is not None
    assert side_of_median(7 * mixed.needed // 8, mixed.needed) is True
    even = _judge([0.0009, 0.0017] * 4, [0.001] * 8)
    assert (even.state, even.needed) == (State.UNKNOWN, None)


def test_the_sign_test_errs_in_at_most_one_case_of_a_hundred() -> None:
    rng = np.random.default_rng(1)
    trusted = refused = 0
    for _ in range(2000):
        # The median of d / f is exactly at the limit.
        d = RATIO * np.exp(0.3 * rng.standard_normal(12))
        side = judge_pairs(0.001 * d, np.full(12, 0.001)).state
        trusted += side is State.OK
        refused += side is State.CHANGED
    assert trusted <= 0.013 * 2000
    assert refused <= 0.013 * 2000


def test_an_honest_server_is_refused_almost_never() -> None:
    rng = np.random.default_rng(2)
    states = [
        judge_divergences(
            0.001 * np.exp(0.1 * rng.standard_normal(8)),
            0.001 * np.exp(0.1 * rng.standard_normal(8)),
            rng,
        ).state
        for _ in range(200)
    ]
    assert states.count(State.OK) >= 190
    assert not {State.CHANGED, State.WORSE} & set(states)


@pytest.mark.parametrize("shapes", [(0, 0), (3, 4)])
def test_nothing_and_unpaired_numbers_are_refused(shapes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="beside"):
        judge_pairs(np.ones(shapes[0]), np.ones(shapes[1]))
