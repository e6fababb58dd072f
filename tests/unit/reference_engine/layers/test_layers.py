"""Divergence by layer, held against networks that were put together by hand."""

import copy

import numpy as np
import pytest
import torch

from reference_engine.layers.measure import LayerMeasurement
from reference_engine.layers.passes import CACHE
from ringtrue.errors import MeasureError, UsageError
from tests.unit.reference_engine.layers.conftest import ARCHITECTURES

SEQUENCES = [tuple(range(40, 100)), tuple(range(97, 60, -1))]


def _measure(engine, reference, candidate, sequences=SEQUENCES, **options):
    return engine.call(LayerMeasurement(reference, candidate, sequences, **options).run).result()


@torch.inference_mode()
def _naive_kl(reference, network):
    """KL of plain forward passes of two whole networks, in float64."""
    parts = []
    for ids in SEQUENCES:
        tensor = torch.tensor([ids])
        p, q = (torch.log_softmax(one(tensor).logits[0].double(), -1) for one in (reference, network))
        parts.append((p.exp() * (p - q)).sum(-1))
    return float(torch.cat(parts).mean())


def _with_layers(reference, candidate, chosen):
    network = copy.deepcopy(reference.network)
    twin = next(m for m in network.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == 4)
    for layer in chosen:
        twin[layer].load_state_dict(candidate.layers[layer].state_dict())
    return network


@pytest.mark.parametrize("architecture", ["llama", "mixtral"])
def test_swaps_and_prefixes_equal_networks_assembled_by_hand(architecture, small_engine, make_model):
    reference = small_engine.load(str(make_model(architecture)))
    candidate = small_engine.load(f"{reference.name}@int4")
    found = _measure(small_engine, reference, candidate)
    assert found.control == 0.0
    for row in found.layers:
        swapped = _naive_kl(reference.network, _with_layers(reference, candidate, [row.layer]))
        prefix = _naive_kl(reference.network, _with_layers(reference, candidate, range(row.layer + 1)))
        assert row.swap_kl == pytest.approx(swapped, rel=1e-4)
        assert row.cum_kl == pytest.approx(prefix, rel=1e-4)
    assert found.full_kl == found.layers[-1].cum_kl
    assert found.full_kl == pytest.approx(_naive_kl(reference.network, candidate.network), rel=1e-4)
    assert found.outside == ()  # this rounding leaves embedding, norm and head alone


def test_another_rotary_base_is_named_outside_the_layers(small_engine, make_model):
    reference = small_engine.load(str(make_model("llama")))
    candidate = small_engine.load(f"{reference.name}@rope:base=333")
    found = _measure(small_engine, reference, candidate)
    (row,) = found.outside
    assert row.module == "rotary_emb"
    assert row.swap_kl == pytest.approx(found.full_kl, rel=1e-4)
    assert found.full_kl > 0.01
    assert all(layer.swap_kl == 0 for layer in found.layers)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_another_checkpoint_of_any_architecture_is_measured_everywhere(
    architecture, small_engine, make_model
):
    def tune(network):
        generator = torch.Generator().manual_seed(1)
        for weight in network.parameters():
            weight.add_(1e-3 * torch.randn(weight.shape, generator=generator))

    reference = small_engine.load(str(make_model(architecture)))
    candidate = small_engine.load(str(make_model(architecture, change=tune)))
    found = _measure(small_engine, reference, candidate)
    assert found.control == 0.0
    assert len(found.layers) == 4
    assert all(row.swap_kl > 0 and row.sqnr_db > 0 and row.cosine < 1 for row in found.layers)
    assert len(found.outside) >= 2  # embedding and final norm at least
    assert {row.layer for row in found.modules} == {
        row.layer for row in sorted(found.layers, key=lambda row: -row.swap_kl)[:3]
    }
    assert found.additivity is not None


def test_a_model_against_itself_is_zero_everywhere_and_has_no_additivity(small_engine, small_model):
    model = small_engine.load(str(small_model))
    found = _measure(small_engine, model, model)
    assert found.full_kl == found.control == 0.0
    assert all(row.swap_kl == row.cum_kl == row.error == 0 for row in found.layers)
    assert all(row.sqnr_db is None and row.cosine == pytest.approx(1) for row in found.layers)
    assert found.additivity is None
    assert found.modules == found.outside == ()


def test_modules_are_looked_at_in_the_worst_layers_only_and_find_the_damaged_one(small_engine, make_model):
    def damage(network):
        network.model.layers[2].mlp.down_proj.weight *= 1.3
        network.model.layers[1].self_attn.v_proj.weight *= 1.02

    reference = small_engine.load(str(make_model("llama")))
    candidate = small_engine.load(str(make_model("llama", change=damage)))
    found = _measure(small_engine, reference, candidate, modules_in=1)
    assert [(row.layer, row.module) for row in found.modules] == [(2, "mlp.down_proj")]
    assert found.modules[0].swap_kl == pytest.approx(found.layers[2].swap_kl, rel=1e-6)
    assert found.layers[0].swap_kl == found.layers[3].swap_kl == 0.0
    assert found.beyond(0.0) == 1


def test_a_rounded_cache_is_a_module_of_its_layer(small_engine, small_model):
    reference = small_engine.load(str(small_model))
    candidate = small_engine.load(f"{small_model}@kv-int8:layers=1")
    found = _measure(small_engine, reference, candidate)
    assert [row.swap_kl > 0 for row in found.layers] == [False, True, False]
    assert [(row.layer, row.module) for row in found.modules] == [(1, CACHE)]
    assert found.modules[0].swap_kl == found.layers[1].swap_kl == pytest.approx(found.full_kl, rel=1e-6)


def test_a_candidate_in_half_precision_is_measured_in_its_own_dtype(small_engine, make_model):
    reference = small_engine.load(str(make_model("llama")))
    found = _measure(small_engine, reference, small_engine.load(f"{reference.name}@bf16"))
    assert 0 < found.full_kl < 0.05
    assert "head" in {row.module for row in found.outside}


def test_the_reference_is_left_as_it_was(small_engine, small_model):
    reference = small_engine.load(str(small_model))
    before = [id(layer) for layer in reference.layers]
    _measure(small_engine, reference, small_engine.load(f"{small_model}@int3"))
    assert [id(layer) for layer in reference.layers] == before
    assert all(not layer._forward_hooks for layer in reference.layers)


def test_nan_is_located_by_layer_module_and_position_and_not_averaged(small_engine, make_model):
    def poison(network):
        network.model.layers[2].mlp.up_proj.weight[3, 5] = torch.nan

    reference = small_engine.load(str(make_model("llama")))
    candidate = small_engine.load(str(make_model("llama", change=poison)))
    with pytest.raises(
        MeasureError, match=r"NaN first appears in the output of layer 2, mlp.up_proj at position 0"
    ):
        _measure(small_engine, reference, candidate)


def test_layers_that_share_state_are_refused(small_engine, small_model, monkeypatch):
    """An architecture whose layers pass something beside the hidden states can't be cut between them."""
    reference = small_engine.load(str(small_model))
    calls = iter(range(1, 10_000))

    def remembers(_, __, output):
        return output + 1e-3 * next(calls)

    handle = reference.layers[1].register_forward_hook(remembers)
    try:
        with pytest.raises(MeasureError, match="layers share state"):
            _measure(small_engine, reference, reference)
    finally:
        handle.remove()


def test_no_sequence_is_a_usage_error(small_engine, small_model):
    model = small_engine.load(str(small_model))
    with pytest.raises(UsageError, match="no token sequences"):
        LayerMeasurement(model, model, [])


def test_progress_counts_what_it_announced(small_engine, small_model):
    reference = small_engine.load(str(small_model))
    measurement = LayerMeasurement(reference, small_engine.load(f"{small_model}@int4"), SEQUENCES)
    steps = []
    small_engine.call(lambda: measurement.run(steps.append)).result()
    assert sum(steps) == measurement.cost


def test_means_weigh_positions_and_not_sequences(small_engine, small_model):
    reference = small_engine.load(str(small_model))
    candidate = small_engine.load(f"{small_model}@int3")
    short, long = (40, 41, 42), tuple(range(40, 100))
    parts = [_measure(small_engine, reference, candidate, [ids]).full_kl for ids in (short, long)]
    both = _measure(small_engine, reference, candidate, [short, long])
    assert both.full_kl == pytest.approx(np.average(parts, weights=[len(short), len(long)]))
    assert both.positions == 63
