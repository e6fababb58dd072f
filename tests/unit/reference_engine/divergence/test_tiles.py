"""The tiled divergence against a naive one in float64."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference_engine.divergence.tiles import RowDivergence, tiled_divergence, tiled_kl
from ringtrue.errors import MeasureError

RELATIVE, ABSOLUTE = 1e-5, 1e-9
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def _naive_kl(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0)
    return terms.sum(axis=1)


def _softmax(logits):
    values = logits.double().numpy()
    values = np.exp(values - values.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)


def _rows(tensor):
    return lambda start, stop: tensor[start:stop]


def _close(ours, naive):
    return np.allclose(ours, naive, rtol=RELATIVE, atol=ABSOLUTE)


@st.composite
def logit_pairs(draw):
    rows = draw(st.integers(1, 7))
    vocabulary = draw(st.integers(2, 60))
    dtype = draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    p = rng.normal(0, draw(st.sampled_from([0.01, 1.0, 8.0])), (rows, vocabulary))
    q = p + rng.normal(0, draw(st.sampled_from([0.0, 1e-3, 1.0])), p.shape)
    if draw(st.booleans()):  # ties
        p, q = np.round(p), np.round(q)
    for side in (p, q):
        if draw(st.booleans()):  # tokens that are ruled out
            side[rng.random(side.shape) < 0.3] = -np.inf
            side[:, 0] = 0.0
        if draw(st.booleans()):  # one token has it all
            side[0] = -np.inf
            side[0, int(rng.integers(vocabulary))] = 3.0
    return torch.tensor(p).to(dtype), torch.tensor(q).to(dtype)


@given(pair=logit_pairs(), tile=st.integers(1, 9), seed=st.integers(0, 99))
@example(pair=(torch.zeros(3, 5), torch.zeros(3, 5)), tile=2, seed=0)
@settings(max_examples=300, deadline=None)
def test_every_number_agrees_with_a_naive_computation_in_float64(pair, tile, seed):
    p_logits, q_logits = pair
    rows, vocabulary = p_logits.shape
    targets = torch.tensor(np.random.default_rng(seed).integers(0, vocabulary, rows))
    found = tiled_divergence(_rows(p_logits), _rows(q_logits), targets, vocabulary=vocabulary, tile_rows=tile)
    p, q = _softmax(p_logits), _softmax(q_logits)
    middle = (p + q) / 2
    assert _close(found.kl, _naive_kl(p, q))
    assert _close(found.reverse_kl, _naive_kl(q, p))
    assert _close(found.js, (_naive_kl(p, middle) + _naive_kl(q, middle)) / 2)
    here = np.arange(rows)
    with np.errstate(divide="ignore"):
        assert _close(found.logprob_p, np.log(p[here, targets]))
        assert _close(found.logprob_q, np.log(q[here, targets]))
    assert _close(found.delta_p, q[here, targets] - p[here, targets])
    best = p_logits.double().numpy().argmax(axis=1)
    assert np.array_equal(found.top1, best == q_logits.double().numpy().argmax(axis=1))
    q_values = q_logits.double().numpy()
    assert np.array_equal(found.rank, (q_values > q_values[here, best][:, None]).sum(axis=1) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert _close(found.entropy_p, -np.where(p > 0, p * np.log(p), 0).sum(axis=1))
    alone = tiled_kl(_rows(p_logits), [_rows(q_logits), _rows(p_logits)], rows, vocabulary=vocabulary)
    assert np.array_equal(alone[0], found.kl)
    assert np.all(alone[1] == 0.0)


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 0.3])
def test_a_wide_vocabulary_keeps_its_precision(scale):
    generator = torch.Generator().manual_seed(3)
    p = torch.randn(5, 152_000, generator=generator) * 4
    q = p + torch.randn(5, 152_000, generator=generator) * scale
    found = tiled_kl(_rows(p), [_rows(q)], 5, vocabulary=152_000, tile_rows=2)
    assert _close(found[0], _naive_kl(_softmax(p), _softmax(q)))


def test_tiles_of_any_height_give_the_same_bits():
    generator = torch.Generator().manual_seed(5)
    p, q = (torch.randn(23, 900, generator=generator) for _ in range(2))
    targets = torch.arange(23)
    results = [
        tiled_divergence(_rows(p), _rows(q), targets, vocabulary=900, tile_rows=rows) for rows in (1, 4, 23)
    ]
    for other in results[1:]:
        assert np.array_equal(other.kl, results[0].kl)
        assert np.array_equal(other.js, results[0].js)


def test_a_token_that_only_the_reference_allows_is_an_infinite_divergence():
    p, q = torch.zeros(1, 3), torch.tensor([[0.0, 0.0, -torch.inf]])
    found = tiled_divergence(_rows(p), _rows(q), torch.tensor([2]), vocabulary=3)
    assert found.kl[0] == np.inf
    assert np.isfinite(found.reverse_kl[0])
    assert found.logprob_q[0] == -np.inf
    assert found.js[0] == pytest.approx(
        _naive_kl(_softmax(p), (_softmax(p) + _softmax(q)) / 2)[0] / 2
        + _naive_kl(_softmax(q), (_softmax(p) + _softmax(q)) / 2)[0] / 2
    )


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("side", ["reference", "candidate"])
def test_what_is_no_number_is_named_with_its_side_and_position(bad, side):
    good, broken = torch.zeros(9, 4), torch.zeros(9, 4)
    broken[6, 1] = bad
    p, q = (broken, good) if side == "reference" else (good, broken)
    with pytest.raises(MeasureError, match=f"the {side}'s logits are not numbers at position 6"):
        tiled_divergence(_rows(p), _rows(q), torch.zeros(9, dtype=torch.long), vocabulary=4, tile_rows=4)


def test_no_rows_give_no_rows():
    empty = torch.zeros(0, dtype=torch.long)
    found = tiled_divergence(_rows(torch.zeros(0, 4)), _rows(torch.zeros(0, 4)), empty, vocabulary=4)
    assert len(found) == 0
    assert isinstance(found, RowDivergence)
