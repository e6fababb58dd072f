import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.alarms.rank_process import mean_log_divergence, rank_alarms, ranks_among_all
from logprob_drift.night import NUMERIC
from ringtrue.e_values import alarm_threshold

A = alarm_threshold(200)
K = 99
LENGTHS = (128, 1024, 16384)


def nights(shape: tuple[int, int, int], seed: int) -> np.ndarray:
    """Honest [streams, nights, buckets] whose buckets share a part of the night."""
    rng = np.random.default_rng(seed)
    return 0.5 * rng.standard_normal((*shape[:2], 1)) + np.sqrt(0.75) * rng.standard_normal(shape)


def replicates(count: int, seed: int) -> np.ndarray:
    return np.moveaxis(nights((count, K, len(LENGTHS)), seed), 1, 2)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_the_number_of_a_night_is_its_mean_log_divergence() -> None:
    assert mean_log_divergence(np.array([1.0, np.e**2])) == pytest.approx(1.0)
    assert mean_log_divergence(np.zeros(3)) == pytest.approx(np.log(NUMERIC))
    assert mean_log_divergence(np.array([])) is None
    with pytest.raises(ValueError, match="negative"):
        mean_log_divergence(np.array([-1e-3]))


@given(st.integers(99, 400), st.integers(0, 50))
def test_the_e_value_of_a_uniform_rank_has_an_expectation_of_one(k: int, ties: int) -> None:
    others = np.arange(k, dtype=np.float64)
    x = np.concatenate([others - 0.5, [k]])[:, None, None]  # one for each of the k + 1 ranks

    e_values = ranks_among_all(x, others[None], rng())

    assert e_values.mean() == pytest.approx(1)
    assert e_values.max() == e_values[-1, 0, 0] > 45


def test_ties_are_broken_at_random() -> None:
    x = np.zeros((20_000, 1, 1))

    assert ranks_among_all(x, np.zeros((1, K)), rng()).mean() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("once", [False, True])
def test_honest_endpoints_keep_to_their_budget(once: bool) -> None:
    alarms = 0
    for seed in range(10):
        drawn = replicates(200, 100 + seed)
        found = rank_alarms(
            nights((10, 200, 3), seed), drawn[0] if once else drawn, LENGTHS, A, np.random.default_rng(seed)
        )
        alarms += int((found.first >= 0).sum())

    assert alarms <= 2


@pytest.mark.parametrize("once", [False, True])
def test_a_shift_is_seen_in_few_nights_and_dated(once: bool) -> None:
    x = nights((40, 60, 3), 1)
    x[:, 20:] += 5
    drawn = replicates(60, 2)

    found = rank_alarms(x, drawn[0] if once else drawn, LENGTHS, A, rng())

    assert np.median(found.first) <= 24
    assert (np.abs(found.since - 20) <= 1).mean() > 0.8
    assert found.alarm[:, -1].all()


def test_a_fault_of_long_prompts_has_its_onset_there_and_a_slope() -> None:
    x = nights((20, 60, 3), 3)
    x[:, 20:, 2] += 6

    found = rank_alarms(x, replicates(60, 4), LENGTHS, A, rng())

    assert (found.first >= 0).all()
    assert {found.onset(stream, int(found.first[stream]) + 3) for stream in range(20)} == {16384}
    assert np.median(found.slope[:, 30]) > 0.8
    assert abs(np.median(found.slope[:, :20])) < 0.2
    assert found.onset(0, 10) is None


def test_nights_closer_to_the_reference_than_honest_ones_are_no_alarm() -> None:
    x = nights((20, 60, 3), 5) - 5

    assert not rank_alarms(x, replicates(60, 6), LENGTHS, A, rng()).alarm.any()


@pytest.mark.parametrize("jitter", [0.0, 0.1, 0.3])
def test_an_endpoint_that_repeats_itself_is_unknown_whatever_its_rank(jitter: float) -> None:
    generator = np.random.default_rng(8)
    x = generator.standard_normal((200, 1, 3)) + jitter * generator.standard_normal((200, 60, 3))

    found = rank_alarms(x, replicates(60, 9), LENGTHS, A, rng())

    assert (found.first >= 0).sum() <= 1
    reason = found.unknown(0, 5)
    assert reason is not None
    assert "rule of one night" in reason


def test_constant_replicates_are_no_evidence() -> None:
    found = rank_alarms(nights((2, 40, 3), 1) + 50, np.zeros((40, 3, K)), LENGTHS, A, rng())

    assert not found.alarm.any()
    reason = found.unknown(0, 30)
    assert reason is not None
    assert "replicates do not differ" in reason


def test_missing_nights_and_buckets_are_left_out() -> None:
    x = nights((4, 40, 3), 2)
    x[:, 20] = np.nan
    x[:, 25, 0] = np.nan

    found = rank_alarms(x, replicates(40, 3), LENGTHS, A, rng())

    assert found.unknown(0, 20) == "nothing was measured this night"
    assert found.unknown(0, 25) is None
    assert np.isnan(found.e_values[:, 25, 0]).all()
    assert np.isfinite(found.evidence).all()
    assert np.isfinite(found.slope[:, 25]).all()


def test_one_night_alone_is_unknown() -> None:
    found = rank_alarms(nights((1, 1, 3), 1), replicates(1, 2), LENGTHS, A, rng())

    assert found.unknown(0, 0) is not None
    assert not found.alarm.any()


def test_the_same_generator_gives_the_same_answer() -> None:
    x, drawn = nights((3, 30, 3), 1), replicates(30, 2)

    one, other = (rank_alarms(x, drawn, LENGTHS, A, rng()) for _ in range(2))

    assert np.array_equal(one.e_values, other.e_values, equal_nan=True)


def test_what_cannot_be_ranked_is_refused() -> None:
    x, drawn = nights((2, 5, 3), 1), replicates(5, 2)

    with pytest.raises(ValueError, match="98 replicates"):
        rank_alarms(x, drawn[..., :98], LENGTHS, A, rng())
    with pytest.raises(ValueError, match="replicates, 2 lengths"):
        rank_alarms(x, drawn, LENGTHS[:2], A, rng())
    with pytest.raises(ValueError, match="ascend"):
        rank_alarms(x, drawn, (1024, 128, 4096), A, rng())
    with pytest.raises(ValueError, match="not finite"):
        rank_alarms(x, np.where(drawn > 2, np.nan, drawn), LENGTHS, A, rng())
