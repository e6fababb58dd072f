import numpy as np
import pytest
import torch

from reference_engine.divergence.states import ExactStates, batch_states
from ringtrue.errors import MeasureError


@pytest.fixture
def passes(small):
    """Count the forward passes of the small model."""
    counted = []
    hook = small.network.base_model.register_forward_hook(lambda *_: counted.append(1))
    yield counted
    hook.remove()


def test_states_are_those_of_a_plain_call_less_the_last(small, sequences):
    with torch.inference_mode():
        plain = small.network.base_model(input_ids=torch.tensor([sequences[3]])).last_hidden_state[0]
    assert torch.equal(ExactStates(small)(sequences[3]), plain[:-1])


def test_a_sequence_is_run_once(small, sequences, passes):
    states = ExactStates(small)
    first, second = states(sequences[4]), states(list(sequences[4]))
    assert torch.equal(first, second)
    assert len(passes) == 1


def test_what_does_not_fit_is_run_again(small, sequences, passes):
    states = ExactStates(small, most_bytes=16 * 4 * small.network.config.hidden_size)
    for ids in (sequences[4], sequences[2], sequences[4], sequences[2]):
        states(ids)
    assert len(passes) == 3  # 63 rows of states do not fit and come twice, 16 do


def test_a_batch_agrees_with_single_passes(small, sequences):
    batch = batch_states(small, sequences, splits=(16, 70))
    for ids, states in zip(sequences, batch, strict=True):
        single = ExactStates(small)(ids)
        assert states.shape == single.shape == (len(ids) - 1, 64)
        assert np.allclose(states, single, atol=1e-4)


def test_nan_is_refused_by_its_place(changed, sequences):
    def spoil(weights):
        weights["model.layers.1.mlp.down_proj.weight"][0, 0] = torch.nan

    model = changed(spoil)
    with pytest.raises(MeasureError, match=r"layer 1, mlp\.down_proj at position 0") as caught:
        ExactStates(model)(sequences[3])
    assert caught.value.where == str(model.name)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("x"), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_memory_that_runs_out_in_the_forward_pass_is_named_with_its_length(small, sequences, error):
    def full(*_):
        raise error

    hook = small.network.base_model.register_forward_pre_hook(full)
    try:
        with pytest.raises(
            MeasureError, match=r"forward pass of a sequence of 200 tokens.*shorter sequences"
        ):
            ExactStates(small)(sequences[7])
    finally:
        hook.remove()


def test_another_failure_of_the_forward_pass_is_not_taken_for_memory(small, sequences):
    def broken(*_):
        raise RuntimeError("shapes do not match")

    hook = small.network.base_model.register_forward_pre_hook(broken)
    try:
        with pytest.raises(RuntimeError, match="shapes"):
            ExactStates(small)(sequences[7])
    finally:
        hook.remove()
