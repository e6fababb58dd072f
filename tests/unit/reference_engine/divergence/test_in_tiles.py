"""Tiles that shrink when memory runs out."""

import pytest
import torch

from reference_engine.divergence.in_tiles import in_tiles
from ringtrue.errors import MeasureError


def _needs_at_most(limit, error):
    def compute(start, stop):
        if stop - start > limit:
            raise error
        return (start, stop)

    return compute


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
        MemoryError(),
    ],
)
def test_a_tile_that_does_not_fit_is_halved_until_it_does(error):
    tiles = in_tiles(21, 16, _needs_at_most(5, error))
    assert tiles == [(0, 4), (4, 8), (8, 12), (12, 16), (16, 20), (20, 21)]


def test_one_row_that_does_not_fit_is_a_clear_error():
    with pytest.raises(MeasureError, match="single row of logits") as caught:
        in_tiles(8, 4, _needs_at_most(0, MemoryError()))
    assert "--device" in str(caught.value)


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    with pytest.raises(RuntimeError, match="shapes"):
        in_tiles(8, 4, _needs_at_most(2, RuntimeError("shapes do not match")))


def test_a_real_allocation_that_cannot_be_met_counts_as_out_of_memory():
    def compute(start, stop):
        return torch.empty((stop - start) * 2**50, dtype=torch.uint8) if stop - start > 1 else start

    assert in_tiles(3, 2, compute) == [0, 1, 2]
