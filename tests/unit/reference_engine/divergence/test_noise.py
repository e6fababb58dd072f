import numpy as np
import pytest

from reference_engine.divergence.noise import measure_floor
from reference_engine.divergence.states import ExactStates
from ringtrue.errors import ModelError, UsageError

TEXT = (
    "The night shift counted what the day had promised, and wrote it down without a word of comment. "
    "def count(items):\n    return sum(1 for item in items if item.promised)\n"
) * 20


@pytest.fixture(scope="module")
def real(engine):
    return engine.load("smollm2-135m")


@pytest.fixture(scope="module")
def texts(reference):
    ids = reference.encode(TEXT)
    return [ids[i * 7 : i * 7 + length] for i, length in enumerate((64, 64, 80, 96))]


def test_the_floor_of_bf16_is_what_honest_servers_show(engine, real, texts):
    floor = measure_floor(engine, ExactStates(real), texts, dtype="bf16", seed=3)
    assert floor.dtype == "bf16"
    assert [len(rows) for rows in floor.draws[0]] == [len(ids) - 1 for ids in texts]
    assert 0.0003 < floor.kl.mean() < 0.003


def test_the_floor_of_fp32_is_numeric_and_not_zero(engine, real, texts):
    floor = measure_floor(engine, ExactStates(real), texts, dtype="fp32", seed=3)
    assert 0 < floor.kl.mean() < 1e-7
    assert floor.kl.max() < 1e-6


def test_draws_batch_anew_and_seeds_repeat(small_engine, small, sequences):
    first, again, other = (
        measure_floor(small_engine, ExactStates(small), sequences, dtype="bf16", seed=seed, draws=2)
        for seed in (5, 5, 6)
    )
    assert first.kl.shape == (2, sum(len(ids) - 1 for ids in sequences))
    assert np.array_equal(first.kl, again.kl)
    assert not np.array_equal(first.kl, other.kl)
    assert not np.array_equal(first.kl[0], first.kl[1])


def test_each_row_belongs_to_the_sequence_it_is_listed_under(small_engine, small, sequences):
    floor = measure_floor(small_engine, ExactStates(small), sequences, dtype="fp32", seed=1)
    for rows, ids in zip(floor.draws[0], sequences, strict=True):
        alone = measure_floor(small_engine, ExactStates(small), [ids], dtype="fp32", seed=1).draws[0][0]
        assert rows.logprob_p.tolist() == alone.logprob_p.tolist()
        assert rows.logprob_q == pytest.approx(alone.logprob_q, abs=2e-4)


def test_every_batch_is_told_when_it_is_done(small_engine, small, sequences):
    told = []
    measure_floor(
        small_engine,
        ExactStates(small),
        sequences,
        dtype="fp32",
        seed=1,
        draws=3,
        advance=told.append,
    )
    assert sum(told) == 3 * sum(map(len, sequences))


def test_what_cannot_be_measured_is_refused(small_engine, small, sequences):
    states = ExactStates(small)
    with pytest.raises(ModelError, match="there is no dtype 'fp64'"):
        measure_floor(small_engine, states, sequences, dtype="fp64", seed=1)
    with pytest.raises(ValueError, match="0 draws"):
        measure_floor(small_engine, states, sequences, dtype="bf16", seed=1, draws=0)
    with pytest.raises(UsageError, match="single token"):
        measure_floor(small_engine, states, [(1,)], dtype="bf16", seed=1)
