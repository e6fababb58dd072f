import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.models.rounding import round_to_nearest


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
