import numpy as np
import pytest

from logprob_drift.findings import Basis
from logprob_drift.token_only.border_finding import border_finding
from logprob_drift.token_only.border_night import judge_night
from ringtrue.records import Cause, Check, Party, State
from ringtrue.verdict import state_of


def test_a_swapped_model_is_changed_and_an_honest_one_ok() -> None:
    swapped = judge_night(18, 20, rate=0.01, looks=3)
    honest = judge_night(0, 20, rate=0.01, looks=3)

    assert (swapped.state, honest.state) == (State.CHANGED, State.OK)
    assert swapped.e_value > 3000
    assert honest.e_value < 1 / 20


def test_a_few_violations_are_no_change_and_some_are_unknown() -> None:
    states = [judge_night(k, 20, rate=0.01).state for k in range(21)]

    assert states[:2] == [State.OK, State.OK]
    assert State.UNKNOWN in states
    assert states == sorted(states, key=[State.OK, State.UNKNOWN, State.CHANGED].index)


def test_the_detectable_share_is_the_least_that_is_changed() -> None:
    night = judge_night(0, 20, rate=0.01)
    assert night.detectable is not None
    least = round(20 * night.detectable)

    assert judge_night(least, 20, rate=0.01).state is State.CHANGED
    assert judge_night(least - 1, 20, rate=0.01).state is not State.CHANGED


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05])
def test_the_inputs_needed_are_the_fewest_that_decide_both_ways(rate: float) -> None:
    needed = judge_night(0, 0, rate=rate).needed

    assert judge_night(needed, needed, rate=rate).state is State.CHANGED
    assert judge_night(0, needed, rate=rate).state is State.OK
    fewer = judge_night(needed - 1, needed - 1, rate=rate), judge_night(0, needed - 1, rate=rate)
    assert State.UNKNOWN in {night.state for night in fewer}


def test_no_answer_is_unknown_and_says_how_many_are_needed() -> None:
    night = judge_night(0, 0, rate=0.01)
    finding = border_finding("acme", night, Basis())

    assert (night.state, night.e_value, night.interval, night.detectable) == (State.UNKNOWN, 1.0, None, None)
    assert f"{night.needed} more" in finding.message
    assert (state_of(finding), finding.value) == (State.UNKNOWN, None)


def test_many_honest_violations_can_decide_nothing() -> None:
    night = judge_night(10, 20, rate=0.4, asks=3)

    assert night.state is State.UNKNOWN
    assert "outside" in border_finding("acme", night, Basis()).message


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="violations"):
        judge_night(3, 2, rate=0.01)


@pytest.mark.parametrize("correlation", [0.0, 0.05])
def test_honest_nights_of_three_looks_reach_a_level_no_more_often_than_promised(correlation: float) -> None:
    """At a level of 20, so that there is something to count: at most 1 night in 20."""
    rng = np.random.default_rng(0)
    nights, inputs, rate, looks, level = 4000, 20, 0.03, 3, 20.0
    size = (1 - correlation) / max(correlation, 1e-9)
    chance = rng.beta(rate * size, (1 - rate) * size, nights) if correlation else np.full(nights, rate)
    fires = np.zeros(nights, dtype=bool)
    ever = np.zeros((nights, inputs), dtype=bool)
    for asks in range(1, looks + 1):
        ever |= rng.random((nights, inputs)) < chance[:, None]
        changed = [
            judge_night(k, inputs, rate=rate, asks=asks, looks=looks, level=level).state is State.CHANGED
            for k in range(inputs + 1)
        ]
        fires |= np.array(changed)[ever.sum(axis=1)]

    assert fires.mean() <= 1 / level


def test_the_finding_blames_identity_and_names_what_else_it_could_be() -> None:
    night = judge_night(15, 20, rate=0.01)
    finding = border_finding(
        "acme", night, Basis(counted=True, withheld=2, unusable={"without_token_ids": 1})
    )

    assert (finding.check, finding.cause, finding.party) == (Check.IDENTITY, Cause.IDENTITY, Party.PROVIDER)
    assert finding.alternatives == (Cause.NUMERICS, Cause.SAMPLING, Cause.PROMPT)
    assert (finding.value, finding.n) == (0.75, 20)
    assert finding.interval is not None
    assert "15 of 20 border inputs" in finding.message
    assert "2 answers withheld" in finding.message
    assert "1 answers left out" in finding.message
