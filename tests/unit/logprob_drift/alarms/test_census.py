import numpy as np
import pytest

from logprob_drift.alarms.census import census, nearest, severity, state_of
from ringtrue.records import Severity


def test_equal_vectors_are_one_state_and_another_kernel_is_another() -> None:
    vector = np.array([-0.1, -2.5, -3.75])

    assert state_of(vector) == state_of(vector + 1e-7)
    assert state_of(vector) != state_of(vector + np.array([0, 0, 2e-4]))
    assert state_of(np.array([0.0])) == state_of(np.array([-0.0]))
    assert len(state_of(vector)) == 16


def test_tokens_are_part_of_the_state() -> None:
    vector = np.array([-0.5, -0.5])

    assert state_of(vector, ["a", "b"]) != state_of(vector, ["b", "a"])
    assert state_of(vector, ["ab", ""]) != state_of(vector, ["a", "b"])
    assert state_of(vector, ["\ud800", "b"]) != state_of(vector)


def test_not_a_number_has_no_state() -> None:
    with pytest.raises(ValueError, match="not a number"):
        state_of(np.array([np.nan]))


def test_a_new_state_is_noticed_within_3_requests() -> None:
    found = census(["a"] * 65 + ["b"], ["a"] * 10 + ["c"] * 3)

    assert found is not None
    assert found.noticed in (10, 11, 12)
    assert found.since == 10
    assert found.new == ("c",)


@pytest.mark.parametrize(("baseline", "requests"), [(8, 5), (24, 3), (66, 2), (300, 2)])
def test_the_longer_the_baseline_the_sooner_a_change_is_noticed(baseline: int, requests: int) -> None:
    found = census(["a"] * baseline, ["b"] * 8)

    assert found is not None
    assert found.noticed is not None
    assert found.noticed < requests


def test_returning_states_are_not_noticed() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        states = rng.choice(["a", "b", "c"], p=[0.7, 0.2, 0.1], size=366).tolist()
        found = census(states[:66], states[66:])
        assert found is not None
        assert found.noticed is None


def test_an_endpoint_that_never_repeats_itself_is_not_noticed() -> None:
    states = [str(i) for i in range(400)]
    found = census(states[:66], states[66:])

    assert found is not None
    assert found.noticed is None
    assert found.share_new > 0.5


def test_the_process_has_expectation_one_under_its_own_null() -> None:
    """Chinese restaurants that go on as they began: the mean product of one start at the first request."""
    rng = np.random.default_rng(1)
    baseline, concentration = ["a"] * 30, 1.0
    products = []
    for _ in range(4000):
        states: list[str] = list(baseline)
        for at in range(4):
            new = rng.random() < concentration / (len(states) + concentration)
            states.append(f"new{at}" if new else states[rng.integers(len(states))])
        found = census(baseline, states[30:])
        assert found is not None
        products.append(found.e_values[-1])
    assert 1.0 < np.mean(products) < 5.5  # a sum over 4 possible starts, each of expectation 1


def test_sticky_but_known_states_are_not_noticed() -> None:
    nights = ["a", "b"] * 8
    states = [state for night in nights for state in [night] * 10]
    found = census(states[:60], states[60:])

    assert found is not None
    assert found.noticed is None


def test_a_short_baseline_says_nothing() -> None:
    assert census(["a"] * 7, ["b"] * 9) is None


def test_no_requests_are_no_evidence() -> None:
    found = census(["a"] * 10, [])

    assert found is not None
    assert (found.noticed, found.since, found.new) == (None, None, ())


def test_severity_is_by_the_distance_to_the_nearest_known_state() -> None:
    known = np.array([[-0.1, -2.0], [-0.2, -2.2]])
    near, far = nearest(np.array([-0.2, -2.21]), known), nearest(np.array([-1.2, -1.0]), known)

    assert near == pytest.approx(0.005)
    assert severity(near, 0.01) is Severity.INFO
    assert severity(far, 0.01) is Severity.WARN
    assert severity(near, None) is Severity.WARN
    with pytest.raises(ValueError, match="beside states"):
        nearest(np.array([-0.2]), known)
