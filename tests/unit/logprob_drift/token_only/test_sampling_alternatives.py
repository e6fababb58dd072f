from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logprob_drift.token_only.sampling_alternatives import (
    ALTERNATIVES,
    CURVE,
    LEAST,
    ONE,
    ROOM,
    STRAY,
    TEMPERED,
    Null,
    head_of,
    null_of,
    temperature_information,
    with_listed,
)

NAMES = [one.name for one in ALTERNATIVES]


def row_of(seed: int, size: int = 2000, spread: float = 3.0) -> np.ndarray:
    logits = spread * np.random.default_rng(seed).standard_normal(size)
    return (logits - np.log(np.exp(logits).sum())).astype(np.float32)


def null(row: np.ndarray, groups: np.ndarray | None = None, honest: tuple[np.ndarray, ...] = ()) -> Null:
    groups = np.arange(row.size) if groups is None else groups
    head = head_of(row, groups)
    return null_of(head, groups[head.ids], honest)[0]


def q_of(found: Null, name: str) -> np.ndarray:
    return np.exp(found.q[NAMES.index(name)])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(2, 1500),
    spread=st.floats(0.1, 6.0),
    named=st.floats(0.0, 1.0),
)
def test_every_alternative_is_a_distribution_and_no_cell_is_rare(
    seed: int, size: int, spread: float, named: float
) -> None:
    row = row_of(seed, size, spread)
    rng = np.random.default_rng(seed)
    groups = np.where(rng.random(size) < named, rng.integers(0, size, size), -1)
    found = null(row, groups, (row_of(seed, size, spread * 1.05),))

    for logs in (found.p[None], found.q, found.curve, found.honest):
        assert np.exp(logs).sum(axis=1) == pytest.approx(1.0)
    assert np.exp(found.p).min() >= LEAST * (1 - 1e-6)
    # No single draw is worth more than log(1 / LEAST), or less than log(STRAY).
    assert (found.q - found.p).min() >= np.log(STRAY) - 1e-9
    assert (found.q - found.p).max() <= -np.log(LEAST)
    assert (found.discount >= 0).all()


def test_the_null_is_the_rows_own_distribution_over_cells() -> None:
    row = row_of(1)
    head = head_of(row, np.arange(row.size))
    found, cell = null_of(head, head.ids)

    p = np.exp(row.astype(np.float64))
    for token, at in zip(head.ids[:20], cell[:20], strict=True):
        assert np.exp(found.p[at]) == pytest.approx(p[token])
    assert np.exp(found.p[found.rest]) == pytest.approx(p[p < LEAST].sum(), rel=1e-5)


def test_tokens_that_look_the_same_are_one_cell_with_all_of_their_mass() -> None:
    row = row_of(2)
    best, rare = int(row.argmax()), int(row.argmin())
    groups = np.arange(row.size)
    groups[rare] = groups[best]
    head = head_of(row, groups)
    _, cell = null_of(head, groups[head.ids])

    assert rare in head.ids
    assert cell[list(head.ids).index(rare)] == cell[list(head.ids).index(best)]


@pytest.mark.parametrize("factor", TEMPERED)
def test_a_temperature_divides_the_logprobs_of_the_whole_vocabulary(factor: float) -> None:
    row = row_of(3)
    found = null(row)
    tempered = np.exp(row.astype(np.float64) / factor)
    tempered /= tempered.sum()

    expected = (1 - STRAY) * tempered.max() + STRAY * np.exp(row.max())
    assert q_of(found, f"temperature_{factor:g}")[0] == pytest.approx(expected, rel=1e-4)


def test_cuts_keep_what_they_say() -> None:
    row = row_of(4)
    found = null(row)
    p = np.exp(found.p)

    assert q_of(found, "greedy")[0] == pytest.approx(1 - STRAY + STRAY * p[0])
    assert q_of(found, "no_top")[0] == pytest.approx(STRAY * p[0])
    top_five = (1 - STRAY) * p[:5] / p[:5].sum() + STRAY * p[:5]
    assert q_of(found, "top_k_5")[:5] == pytest.approx(top_five, rel=1e-5)
    assert q_of(found, "top_k_5")[5:] == pytest.approx(STRAY * p[5:])
    assert q_of(found, "top_p_0.8")[0] == pytest.approx(
        (1 - STRAY) * p[0] / (np.cumsum(p)[np.searchsorted(np.cumsum(p), 0.8)]) + STRAY * p[0], rel=1e-4
    )


def test_the_middle_of_the_curve_is_the_null() -> None:
    found = null(row_of(5))

    assert pytest.approx(1.0) == CURVE[ONE]
    assert found.curve[ONE] == pytest.approx(found.p)


def test_honest_rows_are_no_evidence_on_average() -> None:
    row = row_of(6)
    noise = 0.05 * np.random.default_rng(0).standard_normal((3, row.size))
    honest = tuple((row + one - np.log(np.exp(row + one).sum())).astype(np.float32) for one in noise)
    found = null(row, honest=honest)

    gain = np.log(np.exp(found.honest[:, None] + (found.q - found.p)[None]).sum(axis=2))
    assert (gain - found.discount <= 1e-9).all()
    assert found.discount == pytest.approx(ROOM * np.maximum(0, gain.max(axis=0)))
    assert (null(row).discount == 0).all()


def test_an_own_list_replaces_the_head_and_the_tail_is_scaled() -> None:
    row, own = row_of(7), row_of(8)
    listed = np.argsort(-own)[:10]
    values = own[listed].astype(np.float64)
    head = with_listed(
        head_of(row, np.arange(row.size)), [(int(i),) for i in listed], values, 1 - np.exp(values).sum()
    )
    groups = np.where(np.arange(head.ids.size) < 10, np.arange(head.ids.size), -1)
    found, cell = null_of(head, groups)

    assert len(set(head.ids.tolist())) == head.ids.size
    assert np.exp(found.p[cell[:10]]) == pytest.approx(np.exp(values), rel=1e-5)
    assert np.exp(found.p[found.rest]) == pytest.approx(1 - np.exp(values).sum(), rel=1e-4)


def test_a_list_without_a_tail_is_taken_as_it_is() -> None:
    row = row_of(9)
    values = np.log([0.6, 0.4])
    head = with_listed(head_of(row, np.arange(row.size)), [(3,), (4, 5)], values, 0.0)
    groups = np.where(np.arange(head.ids.size) < 2, np.arange(head.ids.size), -1)

    found, _ = null_of(head, groups)
    assert np.exp(found.p).sum() == pytest.approx(1)
    assert np.exp(found.p).min() >= LEAST


def test_information_about_the_temperature_is_the_variance_of_log_p_that_can_be_seen() -> None:
    row = row_of(10, 200)
    p = np.exp(row.astype(np.float64))
    variance = (p * row**2).sum() - (p * row).sum() ** 2

    seen = temperature_information(row, np.arange(row.size))
    assert seen == pytest.approx(variance, rel=0.05)
    assert seen <= variance
    assert temperature_information(row, np.full(row.size, -1)) == pytest.approx(0.0, abs=1e-9)


def test_tokens_that_are_excluded_altogether_do_no_harm() -> None:
    row = row_of(11)
    row[np.argsort(row)[:1900]] = -np.inf
    found = null(row)

    assert np.isfinite(found.q).all()
    assert np.exp(found.p).sum() == pytest.approx(1, abs=1e-6)
    assert temperature_information(row, np.arange(row.size)) > 0


def test_either_of_two_nearly_tied_tokens_may_be_the_likeliest() -> None:
    row = np.log(np.array([0.3, 0.29, 0.21, 0.2])).astype(np.float32)
    found = null(row)

    assert q_of(found, "greedy")[:2] == pytest.approx((1 - STRAY) * np.array([0.3, 0.29]) / 0.59, abs=STRAY)
    assert q_of(found, "no_top")[:2] == pytest.approx(
        (1 - STRAY) * np.array([0.15, 0.145]) / 0.705, abs=STRAY
    )
