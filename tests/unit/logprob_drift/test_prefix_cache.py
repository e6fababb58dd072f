from __future__ import annotations

import numpy as np
import pytest

from logprob_drift.findings import Basis
from logprob_drift.prefix_cache import cache_finding, judge_cache
from ringtrue.records import DRIFT, Cause, Finding, State
from ringtrue.verdict import state_of

FLOOR = np.array([0.001, 0.002, 0.0015, 0.001])
GROSS = 0.0199  # 10 x the 99th percentile of the floor


def finding(cold: object, warm: object, *, shown: int = 4, basis: Basis = Basis()) -> Finding:  # noqa: B008  # frozen
    first, second = np.asarray(cold, dtype=np.float64), np.asarray(warm, dtype=np.float64)
    night = judge_cache(first, second, FLOOR[: first.size], np.random.default_rng(0))
    return cache_finding("acme", night, shown_warm=shown, key="cache_salt", basis=basis)


@pytest.mark.parametrize(
    ("cold", "warm", "state"),
    [
        (FLOOR, FLOOR, State.OK),
        (FLOOR, [0.5, 0.4, 0.6, 0.5], State.WORSE),
        (FLOOR, [0.021] * 3 + [0.022], State.CHANGED),
        (FLOOR, [0.5, 0.4, 0.6, 0.001], State.UNKNOWN),
        ([0.5, 0.4, 0.6, 0.5], [0.5, 0.4, 0.6, 0.5], State.OK),
        ([0.5, 0.001, 0.001, 0.001], [0.5, 0.4, 0.6, 0.5], State.OK),
        (FLOOR[:3], FLOOR[:3], State.UNKNOWN),
        ([0.5, 0.4, 0.6], [0.5, 0.4, 0.6], State.UNKNOWN),
        ([], [], State.UNKNOWN),
    ],
)
def test_warm_answers_are_judged_where_the_cold_ones_are_right(
    cold: object, warm: object, state: State
) -> None:
    found = finding(cold, warm)
    assert state_of(found) is state
    assert (found.cause is Cause.NUMERICS) == (state in DRIFT)


def test_the_smallest_divergence_that_few_prompts_show_is_stated() -> None:
    found = finding(FLOOR, FLOOR)
    assert found.detectable_effect == pytest.approx(GROSS, rel=0.01)
    assert finding([], []).detectable_effect is None


def test_too_few_say_how_many_are_missing() -> None:
    assert "1 more are needed" in finding(FLOOR[:3], FLOOR[:3]).message
    assert finding([], [], basis=Basis(withheld=2)).message.endswith(
        "2 answers withheld, their token IDs differ"
    )


def test_a_difference_is_stated_beyond_the_floor() -> None:
    found = finding(FLOOR, FLOOR + 0.5)
    assert found.effect == pytest.approx(0.5)
    assert found.evidence["kl_cold"] == pytest.approx(FLOOR.mean())


def test_many_prompts_show_small_differences_too() -> None:
    rng = np.random.default_rng(1)
    floor = rng.lognormal(-7, 0.5, 64)
    cold, warm = rng.lognormal(-7, 0.5, 64), 3 * rng.lognormal(-7, 0.5, 64)
    assert judge_cache(cold, warm, floor, rng).state is State.CHANGED
    assert judge_cache(cold, rng.permutation(cold), floor, rng).state is State.OK


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="floors"):
        judge_cache(FLOOR, FLOOR[:3], FLOOR, np.random.default_rng(0))
