import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reference_engine.batching import BatchLimits
from reference_engine.jitter import plan_batches

LIMITS = BatchLimits(padded_tokens=1_000, waste=0.1)
LENGTHS = st.lists(st.integers(1, 1_500), min_size=0, max_size=40)


@given(LENGTHS, st.integers(0, 2**32))
def test_every_sequence_is_in_exactly_one_batch_within_the_limits(lengths, seed):
    batches = plan_batches(lengths, np.random.default_rng(seed), LIMITS)
    assert sorted(index for batch in batches for index in batch.members) == list(range(len(lengths)))
    assert all(LIMITS.fits([lengths[index] for index in batch.members]) for batch in batches)


@given(LENGTHS, st.integers(0, 2**32))
def test_cuts_lie_inside_the_batch(lengths, seed):
    for batch in plan_batches(lengths, np.random.default_rng(seed), LIMITS):
        width = max(lengths[index] for index in batch.members)
        assert all(0 < cut < width for cut in batch.splits)


def test_a_seed_decides_and_another_seed_differs():
    lengths = [30 + i for i in range(40)]
    plans = [plan_batches(lengths, np.random.default_rng(seed), LIMITS) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_batch_sizes_and_chunks_vary():
    batches = plan_batches([60] * 80, np.random.default_rng(0), LIMITS)
    assert len({len(batch.members) for batch in batches}) > 2
    assert {len(batch.splits) for batch in batches} == {0, 1}
