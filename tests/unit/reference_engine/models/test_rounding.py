import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.models.rounding import (
    round_rows_to_float8,
    round_rows_to_int8,
    round_to_nearest,
    to_float8,
)


def _weight(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("bits", [3, 4, 8])
def test_a_group_takes_at_most_as_many_values_as_the_bits_allow(bits):
    rounded = round_to_nearest(_weight(4, 64), bits)
    for group in rounded.view(-1, 32):
        assert len(group.unique()) <= 2**bits - 1


@given(bits=st.sampled_from([3, 4, 8]), columns=st.integers(1, 100), seed=st.integers(0, 1_000))
@settings(max_examples=30, deadline=None)
def test_no_weight_moves_by_more_than_half_a_step_of_its_group(bits, columns, seed):
    weight = _weight(3, columns, seed)
    rounded = round_to_nearest(weight, bits)
    for start in range(0, columns, 32):
        group = weight[:, start : start + 32]
        step = group.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
        moved = (rounded[:, start : start + 32] - group).abs()
        assert bool((moved <= step * 0.5 + 1e-6).all())


def test_rounding_is_symmetric():
    weight = _weight(4, 64)
    assert torch.equal(round_to_nearest(-weight, 4), -round_to_nearest(weight, 4))


def test_the_largest_weight_of_a_group_survives():
    weight = torch.zeros(1, 32)
    weight[0, 5] = 3.0
    assert torch.equal(round_to_nearest(weight, 3), weight)


def test_a_group_of_zeros_stays_zero():
    assert torch.equal(round_to_nearest(torch.zeros(2, 40), 4), torch.zeros(2, 40))


def test_the_dtype_is_kept():
    assert round_to_nearest(_weight(2, 32).bfloat16(), 4).dtype == torch.bfloat16


@pytest.mark.parametrize("group", [32, 64, 48])
def test_a_group_is_as_wide_as_asked(group):
    weight = _weight(3, 96)
    rounded = round_to_nearest(weight, 4, group=group)
    for start in range(0, 96, group):
        part = weight[:, start : start + group]
        assert torch.equal(rounded[:, start : start + group], round_to_nearest(part, 4, group=group))


def test_stacked_matrices_are_rounded_as_each_alone():
    weight = torch.stack([_weight(4, 40, seed) for seed in range(3)])
    for rounding in (round_rows_to_float8, lambda w: round_to_nearest(w, 4)):
        assert torch.equal(rounding(weight), torch.stack([rounding(one) for one in weight]))


def test_float8_keeps_what_it_can_hold_and_saturates_beyond():
    values = torch.tensor([0.0, -0.0, 1.0, 1.125, 448.0, -448.0, 2.0**-9, 2.0**-11])
    assert to_float8(values).tolist() == [0.0, -0.0, 1.0, 1.125, 448.0, -448.0, 2.0**-9, 0.0]
    assert to_float8(torch.tensor([500.0, -1e9])).tolist() == [448.0, -448.0]


@given(seed=st.integers(0, 1_000), columns=st.integers(1, 70), scale=st.floats(1e-6, 1e6))
@settings(max_examples=30, deadline=None)
def test_a_row_of_float8_is_within_half_a_step_and_keeps_its_largest(seed, columns, scale):
    weight = _weight(3, columns, seed) * scale
    rounded = round_rows_to_float8(weight)
    largest = weight.abs().amax(dim=1, keepdim=True)
    # 3 bits of mantissa: half a step is 1/16 of a normal number, 2^-10 / 448 of the row's largest below.
    allowed = torch.maximum(weight.abs() / 16, largest * 2.0**-10 / 448)
    assert bool(((rounded - weight).abs() <= allowed * 1.001).all())
    assert torch.allclose(rounded.abs().amax(dim=1, keepdim=True), largest, rtol=1e-6)


def test_a_row_of_int8_has_at_most_255_levels_and_keeps_its_largest():
    weight = _weight(2, 2_000)
    rounded = round_rows_to_int8(weight)
    assert all(len(row.unique()) <= 255 for row in rounded)
    assert torch.allclose(rounded.abs().amax(dim=1), weight.abs().amax(dim=1))


def test_rows_of_zeros_stay_zero_and_dtypes_are_kept():
    for rounding in (round_rows_to_float8, round_rows_to_int8):
        assert torch.equal(rounding(torch.zeros(2, 5)), torch.zeros(2, 5))
        assert rounding(_weight(2, 5).half()).dtype == torch.float16
