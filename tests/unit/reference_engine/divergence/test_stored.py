import asyncio
import io

import numpy as np
import pytest
from rich.console import Console

from reference_engine.baselines.building import Build, build_baseline
from reference_engine.baselines.corpus import Corpus, checked_sequence
from reference_engine.baselines.exact import ExactScores, exact_request
from reference_engine.baselines.reading import open_baseline
from reference_engine.baselines.store import BaselineStore
from reference_engine.divergence.comparison import compare_models
from reference_engine.divergence.noise import measure_floor
from reference_engine.divergence.states import ExactStates
from reference_engine.divergence.stored import StoredStates
from ringtrue.errors import ModelError, UsageError
from ringtrue.progress import progress_on


@pytest.fixture
def build(tmp_path, small_engine, sequences):
    """Build a baseline of a model over the sequences, and open it."""

    def built(model, *, states):
        size = {"context_length": model.context_length, "vocabulary_size": model.vocabulary_size}
        corpus = Corpus(tuple(checked_sequence(ids, "here", **size) for ids in sequences))
        request = exact_request(model, corpus, k=5, states=states)
        store = BaselineStore(tmp_path / "baselines")
        progress = progress_on(Console(file=io.StringIO()))
        source = ExactScores(small_engine, model)
        stored, _ = asyncio.run(build_baseline(Build(corpus, request), source, store, progress))
        return open_baseline(stored.id, store)

    return built


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_baseline_stands_in_for_its_model_to_the_bit(small_engine, small, sequences, build, dtype):
    reference = small_engine.load(small.name.with_dtype(dtype))
    candidate = small_engine.load(f"{small.name}@int4")
    states = StoredStates(build(reference, states=True), reference)

    assert states.sequences == sequences
    stored = compare_models(small_engine, states, candidate, sequences)
    computed = compare_models(small_engine, ExactStates(reference), candidate, sequences)
    for left, right in zip(stored, computed, strict=True):
        assert np.array_equal(left.kl, right.kl)
        assert np.array_equal(left.logprob_p, right.logprob_p)


def test_the_floor_reads_a_baseline_too(small_engine, small, sequences, build):
    states = StoredStates(build(small, states=True), small)
    stored = measure_floor(small_engine, states, sequences, dtype="bf16", seed=2)
    computed = measure_floor(small_engine, ExactStates(small), sequences, dtype="bf16", seed=2)
    assert np.array_equal(stored.kl, computed.kl)


def test_a_baseline_without_states_is_refused(small, build):
    with pytest.raises(UsageError, match=r"no hidden states.*Build it with --states"):
        StoredStates(build(small, states=False), small)


def test_another_model_than_the_one_it_was_built_with_is_refused(small_engine, small, build):
    baseline = build(small, states=True)
    with pytest.raises(ModelError, match=r"other weights than those of .*@int4"):
        StoredStates(baseline, small_engine.load(f"{small.name}@int4"))


def test_a_sequence_that_it_does_not_hold_is_refused(small, build):
    states = StoredStates(build(small, states=True), small)
    with pytest.raises(UsageError, match="no sequence of these 3 tokens"):
        states((1, 2, 3))
