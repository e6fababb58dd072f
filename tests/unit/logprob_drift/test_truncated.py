from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.divergence import diverge
from logprob_drift.floor import as_served
from logprob_drift.truncated import truncated_kl


def _row(rng: np.random.Generator, size: int, scale: float) -> np.ndarray:
    logits = scale * rng.standard_normal(size)
    return (logits - np.logaddexp.reduce(logits)).astype(np.float32)


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(3, 60),
    scale=st.floats(0.0, 12.0),
    noise=st.floats(0.0, 2.0),
    data=st.data(),
)
def test_it_is_the_statistic_of_one_row(
    seed: int, size: int, scale: float, noise: float, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    k = data.draw(st.integers(1, size))
    p = _row(rng, size, scale)
    q = _row(rng, size, scale) if noise > 1 else (p + noise * _row(rng, size, 1.0)).astype(np.float32)
    q = (q - np.logaddexp.reduce(q)).astype(np.float32)
    listed = as_served(q, k)
    ids = [cell[0] for cell in listed.cells]
    found = truncated_kl(p[None, ids], np.array([listed.logprobs], dtype=np.float32))
    assert found[0] == pytest.approx(diverge(p, listed).kl, rel=1e-4, abs=2e-6)


def test_equal_rows_do_not_diverge_and_a_token_that_p_excludes_adds_nothing() -> None:
    row = np.log(np.array([[0.7, 0.2]], dtype=np.float32))
    assert truncated_kl(row, row).tolist() == [0.0]
    excluded = np.array([[np.log(0.9), -np.inf]], dtype=np.float32)
    expected = 0.9 * np.log(0.9 / 0.7) + 0.1 * np.log(0.1 / 0.1)
    assert truncated_kl(excluded, row)[0] == pytest.approx(expected, rel=1e-6)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="beside"):
        truncated_kl(np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32))
