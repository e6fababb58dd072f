import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from logprob_drift.alignment import Aligned, Defect
from logprob_drift.divergence import diverge
from logprob_drift.floor import as_served, floor_of

Row = NDArray[np.float32]


def log_softmax(logits: NDArray[np.float64]) -> Row:
    shifted = logits - logits.max()
    return (shifted - np.log(np.exp(shifted).sum())).astype(np.float32)


def true_kl(p_row: Row, q_row: Row) -> float:
    p, q = (np.exp(row.astype(np.float64)) for row in (p_row, q_row))
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum())


@st.composite
def row_pairs(draw: st.DrawFn) -> tuple[Row, Row, int]:
    size = draw(st.integers(2, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sharp = draw(st.sampled_from([0.1, 1.0, 4.0, 10.0]))
    apart = draw(st.sampled_from([0.0, 1e-3, 0.1, 1.0, 5.0]))
    logits = sharp * rng.standard_normal(size)
    if draw(st.booleans()):
        logits[: size // 2] = logits[0]  # ties
    return (
        log_softmax(logits),
        log_softmax(logits + apart * rng.standard_normal(size)),
        draw(st.integers(1, size)),
    )


@settings(max_examples=300, deadline=None)
@given(row_pairs())
def test_the_bounds_hold_the_true_divergences(case: tuple[Row, Row, int]) -> None:
    p, q, k = case
    result = diverge(p, as_served(q, k))
    slack = 1e-5 + 1e-4 * true_kl(p, q)

    assert result.kl <= true_kl(p, q) + slack
    assert result.reverse_low <= true_kl(q, p) + slack
    assert result.reverse_high >= true_kl(q, p) - (1e-5 + 1e-4 * true_kl(q, p))


@settings(max_examples=100, deadline=None)
@given(row_pairs())
def test_more_logprobs_never_loosen_the_lower_bound(case: tuple[Row, Row, int]) -> None:
    p, q, k = case
    fewer, all_of_it = diverge(p, as_served(q, k)), diverge(p, as_served(q, p.shape[0]))

    assert fewer.kl <= all_of_it.kl + 1e-5


@settings(max_examples=100, deadline=None)
@given(row_pairs())
def test_the_whole_vocabulary_gives_the_divergence_itself(case: tuple[Row, Row, int]) -> None:
    p, q, _ = case

    assert diverge(p, as_served(q, p.shape[0])).kl == pytest.approx(true_kl(p, q), rel=1e-3, abs=2e-5)


def test_water_filling_is_tighter_than_one_tail_bucket() -> None:
    p = log_softmax(np.array([3.0, 2.0, 1.9, -2.0, -2.0, -2.0]))
    observed = Aligned(((0,), (3,)), (math.log(0.55), math.log(0.1)), 0.35)
    bucket = 0.55 * math.log(0.55 / np.exp(p[0])) + 0.1 * math.log(0.1 / np.exp(p[3]))
    tail = 1 - float(np.exp(p[0]) + np.exp(p[3]))
    bucket += 0.35 * math.log(0.35 / tail)

    assert diverge(p, observed).reverse_low > bucket + 0.1


def test_equal_rows_diverge_by_nothing_and_agree() -> None:
    p = log_softmax(np.linspace(3, 0, 50))
    result = diverge(p, as_served(p, 5))

    assert result.kl < 1e-9
    assert result.js < 1e-9
    assert result.tv < 1e-6
    assert (result.top1, result.rank) == (True, 0)
    assert result.delta_p == pytest.approx(0, abs=1e-7)


def test_the_rank_is_that_of_the_observed_first_token_in_the_reference() -> None:
    p = log_softmax(np.array([3.0, 2.0, 1.0, 0.0]))
    result = diverge(p, Aligned(((2,), (1,)), (math.log(0.6), math.log(0.2)), 0.2))

    assert (result.top1, result.rank, result.delta_p) == (False, 2, None)


def test_a_token_the_server_left_out_is_censored_and_not_impossible() -> None:
    p = log_softmax(np.array([3.0, 2.9, 0.0, 0.0]))

    assert math.isfinite(diverge(p, Aligned(((2,),), (math.log(0.999999),), 1e-6)).kl)


def test_an_unnamed_entry_lifts_the_cap_of_the_tail() -> None:
    p = log_softmax(np.array([3.0, 2.0, 0.0, 0.0, -3.0]))
    observed = Aligned(((0,), (2,)), (math.log(0.5), math.log(0.05)), 0.45, (Defect.UNIDENTIFIED,))

    result = diverge(p, observed)

    # All unseen mass on the likeliest unlisted token is now possible, and on the least likely too.
    assert result.reverse_low <= 0.5 * math.log(0.5 / np.exp(p[0])) + 0.05 * math.log(
        0.05 / np.exp(p[2])
    ) + 0.45 * math.log(0.45 / np.exp(p[1]))
    assert result.reverse_high >= 0.45 * math.log(0.45 / np.exp(p[4])) - 1


def test_the_floor_uses_the_endpoints_own_k() -> None:
    rng = np.random.default_rng(3)
    p, honest = (log_softmax(rng.standard_normal(100)) for _ in range(2))

    assert floor_of(p, as_served(honest, 20), 5) == pytest.approx(diverge(p, as_served(honest, 5)).kl)
    assert floor_of(p, as_served(honest, 20), 5) < floor_of(p, as_served(honest, 20), 20)
