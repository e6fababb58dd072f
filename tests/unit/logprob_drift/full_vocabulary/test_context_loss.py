import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logprob_drift.full_vocabulary.context_loss import context_loss
from logprob_drift.full_vocabulary.positions import PositionDivergences
from tests.unit.logprob_drift.positions import positions, random_positions


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def growing(power: float, lengths: list[int], *, noise: float = 0.0) -> PositionDivergences:
    """Return sequences whose KL grows with a power of the context."""
    context = np.concatenate([np.arange(1, length + 1) for length in lengths])
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    effect = noise * rng().standard_normal(len(lengths))[sequence]
    return positions(0.001 * context**power * np.exp(effect), sequence=sequence, context=context)


def test_buckets_end_at_powers_of_two_and_say_who_reaches_them() -> None:
    found = context_loss(positions(np.ones(84), sequence=np.repeat([0, 1], [70, 14]), context=[
        *range(1, 71), *range(1, 15)
    ]), rng())  # fmt: skip

    shown = [(b.first, b.last, b.positions, b.kl.n) for b in found.buckets]
    assert shown == [(1, 15, 29, 2), (16, 31, 16, 1), (32, 63, 32, 1), (64, 127, 7, 1)]
    assert all(b.kl.value == 1 and b.floor is None and b.ratio is None for b in found.buckets)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.lists(st.integers(1, 200), min_size=1, max_size=9))
def test_every_mean_equals_the_naive_one(seed: int, lengths: list[int]) -> None:
    compared = random_positions(np.random.default_rng(seed), lengths)

    found = context_loss(compared, rng(), floor=compared.kl / 3, resamples=50)

    assert sum(bucket.positions for bucket in found.buckets) == len(compared)
    for bucket in found.buckets:
        inside = (compared.context >= bucket.first) & (compared.context <= bucket.last)
        assert bucket.kl.value == pytest.approx(compared.kl[inside].mean())
        assert bucket.kl.n == len(set(compared.sequence[inside].tolist()))
        assert bucket.floor is not None
        assert bucket.floor.value == pytest.approx(compared.kl[inside].mean() / 3)
        assert bucket.ratio is not None
        assert bucket.ratio.value == pytest.approx(3)


def test_a_bucket_that_few_sequences_reach_has_no_interval() -> None:
    found = context_loss(growing(0.5, [40] * 8 + [100] * 3, noise=0.2), rng())

    short, long = found.buckets[0], found.buckets[-1]
    assert (short.kl.n, long.kl.n) == (11, 3)
    assert short.kl.interval is not None
    assert long.kl.interval is None
    assert long.kl.value is not None


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, -0.3])
def test_the_slope_is_the_power_with_which_loss_grows(power: float) -> None:
    found = context_loss(growing(power, [500] * 10, noise=0.3), rng())

    assert found.slope.value == pytest.approx(power, abs=0.02)
    assert found.slope.interval is not None


def test_the_slope_of_noise_holds_zero() -> None:
    found = context_loss(random_positions(rng(), [250] * 20, spread=0.5), rng())

    interval = found.slope.interval
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low < 0 < interval.high


def test_one_bucket_and_zeros_have_no_slope() -> None:
    assert context_loss(growing(1, [12] * 8), rng()).slope.value is None
    zeros = context_loss(positions(np.zeros(320), sequence=np.repeat(np.arange(8), 40)), rng())
    assert zeros.slope.value is None
    assert zeros.slope.interval is None


def test_a_floor_of_zero_has_no_ratio_and_no_slope() -> None:
    compared = growing(1, [40] * 8)

    found = context_loss(compared, rng(), floor=np.zeros(320))

    assert all(b.ratio is not None and b.ratio.value is None for b in found.buckets)
    assert found.floor_slope is not None
    assert found.floor_slope.value is None
    assert found.slope.value is not None


def test_a_skipped_start_leaves_the_buckets_that_remain() -> None:
    found = context_loss(growing(0, [100] * 8).skip(40), rng())

    assert [(b.first, b.last, b.positions) for b in found.buckets] == [(32, 63, 184), (64, 127, 296)]


def test_too_few_sequences_have_no_interval_anywhere() -> None:
    found = context_loss(growing(1, [100] * 6), rng())

    assert found.slope.value is not None
    assert found.slope.interval is None
    assert all(b.kl.interval is None for b in found.buckets)
