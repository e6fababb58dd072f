"""Mixtures of experts, whose experts are stacked in one parameter."""

import pytest
import torch

from reference_engine.models.activations import RoundedExperts, RoundedLinear, round_inputs
from reference_engine.models.gguf_types import round_to_gguf
from reference_engine.models.matrices import layer_matrices
from reference_engine.models.rounding import round_rows_to_float8, round_to_nearest
from ringtrue.errors import ModelError

HIDDEN = 64
IDS = tuple(range(60, 76))
ROUNDINGS = {
    "int4": lambda w: round_to_nearest(w, 4),
    "fp8": round_rows_to_float8,
    "q4_0": lambda w: round_to_gguf(w, "q4_0"),
}


def _experts(model):
    return next(
        m for m in model.layers[1].modules() if hasattr(m, "gate_up_proj") and hasattr(m, "down_proj")
    )


@pytest.mark.parametrize("kind", ROUNDINGS)
def test_experts_are_rounded_along_their_input(small_engine, mixture, kind):
    exact, rounded = (_experts(small_engine.load(f"{mixture}{v}")) for v in ("", f"@{kind}"))
    transposed = exact.gate_up_proj.shape[1] == HIDDEN and exact.down_proj.shape[2] == HIDDEN
    for name in ("gate_up_proj", "down_proj"):
        for before, after in zip(getattr(exact, name), getattr(rounded, name), strict=True):
            if "gpt_oss" in str(mixture) or "llama4" in str(mixture):
                assert transposed
                assert torch.equal(after, ROUNDINGS[kind](before.T.contiguous()).T)
            else:
                assert torch.equal(after, ROUNDINGS[kind](before))


def test_routers_stay_exact_and_shared(small_engine, mixture):
    exact, rounded = (small_engine.load(f"{mixture}{v}") for v in ("", "@int3"))
    before = dict(exact.network.named_parameters())
    for name, weight in rounded.network.named_parameters():
        is_router = ".gate." in name or ".router." in name
        if is_router or "norm" in name or "layers" not in name:
            assert weight is before[name], name
        elif weight.dim() > 1 and not name.endswith("bias"):
            assert not torch.equal(weight, before[name]), name


def test_every_variant_scores(small_engine, mixture):
    exact = small_engine.start_score(small_engine.load(str(mixture)), IDS).result()
    for kind in ("bf16", "int8", "fp8", "q8_0", "kv-int8"):
        row = small_engine.start_score(small_engine.load(f"{mixture}@{kind}"), IDS).result()
        assert 0 < abs(row - exact).max() < 0.5, kind


def test_experts_that_round_nothing_compute_what_they_did(small_engine, mixture):
    # A network of its own, since it is changed.
    experts = _experts(small_engine.load(f"{mixture}@bf16+int8+fp32"))
    if "llama4" in str(mixture):
        with pytest.raises(ModelError, match="Llama4TextExperts"):
            round_inputs(experts, lambda values: values)
        return
    states = torch.randn(9, HIDDEN, generator=torch.Generator().manual_seed(1))
    chosen = torch.tensor([[i % 4, (i + 1) % 4] for i in range(9)])
    shares = torch.full((9, 2), 0.5)
    with torch.inference_mode():
        before = experts(states, chosen, shares)
        round_inputs(experts, lambda values: values)
        after = experts(states, chosen, shares)
    assert isinstance(experts, RoundedExperts)
    assert not isinstance(_experts(small_engine.load(str(mixture))), RoundedExperts)
    assert torch.allclose(before, after, atol=1e-6)


def test_dynamic_float8_rounds_the_inputs_of_experts_or_says_that_it_cannot(small_engine, mixture):
    name = f"{mixture}@fp8-dynamic"
    if "llama4" in str(mixture):
        with pytest.raises(ModelError, match=r"Llama4TextExperts.*Use fp8"):
            small_engine.load(name)
        return
    weights_only = small_engine.load(f"{mixture}@fp8")
    model = small_engine.load(name)
    rounded = [m.module for m in layer_matrices(model.layers[0], HIDDEN)]
    assert all(isinstance(module, (RoundedLinear, RoundedExperts)) for module in rounded)
    rows = [small_engine.start_score(m, IDS).result() for m in (weights_only, model)]
    assert 1e-6 < abs(rows[0] - rows[1]).max() < 0.1


def test_experts_that_do_not_say_which_way_they_lie_are_refused():
    module = torch.nn.Module()
    module.experts = torch.nn.Module()
    module.experts.down_proj = torch.nn.Parameter(torch.zeros(2, HIDDEN, HIDDEN))
    with pytest.raises(ModelError, match=r"down_proj \[64, 64\].*which dimension is their input"):
        layer_matrices(module, HIDDEN)
