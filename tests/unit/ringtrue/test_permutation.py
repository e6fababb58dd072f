import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.permutation import permutation_p


def test_p_is_never_zero_and_small_for_a_gross_shift() -> None:
    rng = np.random.default_rng(1)
    before, after = rng.standard_normal((20, 14)), 50 + rng.standard_normal((20, 7))

    p = permutation_p(before, after, rng, 199)

    assert np.all(p > 0)
    assert np.all(p <= 2 / 200)


def test_constant_streams_have_a_p_of_one() -> None:
    p = permutation_p(np.full((2, 5), 0.1), np.full((2, 3), 0.1), np.random.default_rng(0), 99)

    assert p == pytest.approx([1, 1])


def test_honest_nights_are_below_their_level_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_t(3, (4000, 21))

    p = permutation_p(x[:, :14], x[:, 14:], rng)

    assert (p <= 0.01).mean() <= 0.015
    assert 0.07 <= (p <= 0.1).mean() <= 0.13


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_p_is_a_probability_above_zero(n1: int, n2: int, seed: int) -> None:
    rng = np.random.default_rng(seed)

    p = permutation_p(rng.standard_normal((2, n1)), rng.standard_normal((2, n2)), rng, 19)

    assert np.all((p > 0) & (p <= 1))
