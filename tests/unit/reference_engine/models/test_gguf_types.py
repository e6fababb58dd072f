import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, quants
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.models.embedded import embedded_file
from reference_engine.models.gguf_types import fitting_type, head_type, round_to_gguf
from reference_engine.models.kinds import GGUF_TYPES
from reference_engine.models.q6_k import round_to_q6_k


def _weight(rows, columns, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.05


@pytest.mark.parametrize("kind", ["q8_0", "q5_1", "q5_0", "q4_1", "q4_0"])
def test_a_type_is_the_gguf_packages_own(kind):
    weight = _weight(6, 64)
    held = GGMLQuantizationType[kind.upper()]
    theirs = quants.dequantize(quants.quantize(weight.numpy(), held), held)
    assert np.array_equal(round_to_gguf(weight, kind).numpy(), theirs)


@pytest.mark.parametrize("kind", GGUF_TYPES)
def test_stacked_experts_are_rounded_as_each_alone(kind):
    weight = torch.stack([_weight(4, 256, seed) for seed in range(3)])
    alone = torch.stack([round_to_gguf(one, kind) for one in weight])
    assert torch.equal(round_to_gguf(weight, kind), alone)


def test_rows_that_do_not_divide_take_what_llama_cpp_falls_back_to():
    assert fitting_type("q6_k", 1536) == "q6_k"
    assert fitting_type("q6_k", 576) == "q8_0"
    assert fitting_type("q4_0", 48) == "f16"
    assert fitting_type("q6_k", 48) == "f16"
    assert torch.equal(round_to_gguf(_weight(2, 576), "q6_k"), round_to_gguf(_weight(2, 576), "q8_0"))
    assert torch.equal(round_to_gguf(_weight(2, 48), "q4_0"), _weight(2, 48).half().float())


def test_the_head_is_held_in_six_bits_or_more():
    assert {kind: head_type(kind) for kind in ("q4_0", "q6_k", "q8_0")} == {
        "q4_0": "q6_k",
        "q6_k": "q6_k",
        "q8_0": "q8_0",
    }


def test_finer_types_lose_less():
    weight = _weight(64, 512)
    losses = [float((round_to_gguf(weight, kind) - weight).square().sum()) for kind in GGUF_TYPES]
    assert losses == sorted(losses)


@given(seed=st.integers(0, 500), scale=st.floats(5, 1e3))
@settings(max_examples=20, deadline=None)
def test_q6_k_is_within_a_step_of_its_block(seed, scale):
    weight = _weight(2, 256, seed) * scale
    moved = (round_to_q6_k(weight) - weight).abs().reshape(-1, 16)
    peak = weight.abs().reshape(-1, 16).amax(dim=1, keepdim=True)
    # A quant is off by a step of its block at most, and the step by half of 1/128 of the largest block's.
    largest = weight.abs().amax() / 31
    assert bool((moved <= peak / 31 + largest * 32 / 256).all())


@given(seed=st.integers(0, 500))
@settings(max_examples=20, deadline=None)
def test_q6_k_can_be_held_as_a_gguf_file_holds_it(seed):
    """16 blocks of 64 levels around zero, each with a whole multiple of one float16 number as its step."""
    weight = _weight(1, 256, seed)
    for block in round_to_q6_k(weight).reshape(16, 16):
        assert len(block.unique()) <= 64
        step = block.abs()[block != 0].min()
        whole = block / step
        assert float(whole.abs().max()) <= 32


def test_q6_k_of_nothing_is_nothing():
    weight = _weight(3, 256)
    weight[1] = 0
    weight[2, 16:32] = 0
    rounded = round_to_q6_k(weight)
    assert bool((rounded[1] == 0).all())
    assert bool((rounded[2, 16:32] == 0).all())
    assert bool(rounded.isfinite().all())


def test_the_embedded_file_loses_nothing_in_the_type_it_is_in(engine):
    exact, rounded = (engine.load(f"smollm2-135m{variant}") for variant in ("", "@q4_1"))
    types = {tensor.tensor_type.name for tensor in gguf.GGUFReader(embedded_file()).tensors}
    assert types == {"Q4_1", "Q8_0", "F32"}
    before = dict(exact.network.named_parameters())
    for name, weight in rounded.network.named_parameters():
        assert torch.equal(weight, before[name]), name


def test_another_type_changes_the_layers_and_the_tied_head(engine):
    exact, rounded = (engine.load(f"smollm2-135m{variant}") for variant in ("", "@q4_0"))
    before, after = exact.network.model, rounded.network.model
    assert not torch.equal(after.layers[0].mlp.up_proj.weight, before.layers[0].mlp.up_proj.weight)
    # 576 columns: the head falls back to q8_0, which the embedded file is in already.
    assert torch.equal(after.embed_tokens.weight, before.embed_tokens.weight)
    assert rounded.network.lm_head.weight is after.embed_tokens.weight
    assert after.norm.weight is before.norm.weight


def test_without_layers_embedding_and_head_are_rounded_too_and_with_layers_not(small_engine, small_model):
    exact = small_engine.load(str(small_model)).network
    whole = small_engine.load(f"{small_model}@q4_0").network
    part = small_engine.load(f"{small_model}@q4_0:layers=1").network
    embedding, head = exact.model.embed_tokens.weight, exact.lm_head.weight
    assert torch.equal(whole.model.embed_tokens.weight, round_to_gguf(embedding, "q4_0"))
    assert torch.equal(whole.lm_head.weight, round_to_gguf(head, "q6_k"))
    assert part.model.embed_tokens.weight is embedding
    assert part.lm_head.weight is head
