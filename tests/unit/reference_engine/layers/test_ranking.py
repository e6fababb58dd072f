"""The real model: damaged layers are found, and the layers' shares explain the whole.

A layer's own divergence depends on that layer alone. So every layer is
measured once with each damage, and every pair of damaged layers over the int8
background follows from these numbers.
"""

import copy
from dataclasses import replace
from itertools import permutations

import pytest
import torch

from evals.compare.texts import embedded_sequences
from reference_engine.layers.crossing import Crossing
from reference_engine.layers.measure import LayerMeasurement
from reference_engine.layers.passes import divergences, layer_passes

TOKENS = 32
HEAD = 64  # channels of an attention head


def _int3_weights(layer, harder):
    layer.load_state_dict(harder.state_dict())


def _scaled_norm(layer, _):
    layer.post_attention_layernorm.weight.mul_(1.25)


def _swapped_heads(layer, _):
    rows = layer.self_attn.q_proj.weight
    first, fourth = rows[:HEAD].clone(), rows[3 * HEAD : 4 * HEAD].clone()  # of different key-value groups
    rows[:HEAD], rows[3 * HEAD : 4 * HEAD] = fourth, first


DAMAGES = {"int3 weights": _int3_weights, "scaled norm": _scaled_norm, "swapped heads": _swapped_heads}


@pytest.fixture(scope="module")
def ids(reference):
    [sequence] = embedded_sequences(reference.encode, length=TOKENS, count=1, seed=0)
    return sequence


@pytest.fixture(scope="module")
def swap_kl(engine, ids):
    """The divergence of each layer alone, by damage; ``background`` is int8 and undamaged."""
    exact, background, harder = (engine.load(f"smollm2-135m{tail}") for tail in ("", "@int8", "@int3"))

    @torch.inference_mode()
    def measure(candidate):
        crossing = Crossing(exact, candidate, torch.tensor([ids]))
        swaps = [one for one in layer_passes(exact, candidate) if one.place.kind == "swap"]
        return [float(kl.mean()) for _, kl in divergences(crossing, swaps, lambda _: None)]

    def damaged(damage):
        network = copy.deepcopy(background.network)
        candidate = replace(background, network=network)
        with torch.no_grad():
            for layer, other in zip(candidate.layers, harder.layers, strict=True):
                damage(layer, other)
        return candidate

    def all_of_them():
        found = {name: measure(damaged(damage)) for name, damage in DAMAGES.items()}
        return {"background": measure(background), **found}

    return engine.call(all_of_them).result()


def test_of_any_two_damaged_layers_both_rank_before_all_others(swap_kl):
    background = swap_kl["background"]
    layers = range(len(background))
    tried, right = 0, 0
    for first, second in permutations(layers, 2):
        for one in DAMAGES:
            for other in DAMAGES:
                values = list(background)
                values[first], values[second] = swap_kl[one][first], swap_kl[other][second]
                ranked = sorted(layers, key=lambda layer: -values[layer])  # used at once
                tried += 1
                right += set(ranked[:2]) == {first, second}
    assert tried == 30 * 29 * 9
    assert right == tried


def test_a_pair_measured_together_gives_the_numbers_of_each_alone(engine, swap_kl, ids):
    exact, background, harder = (engine.load(f"smollm2-135m{tail}") for tail in ("", "@int8", "@int3"))

    def measure():
        network = copy.deepcopy(background.network)
        candidate = replace(background, network=network)
        with torch.no_grad():
            _int3_weights(candidate.layers[20], harder.layers[20])
            _scaled_norm(candidate.layers[5], None)
        return LayerMeasurement(exact, candidate, [ids], modules_in=2).run()

    found = engine.call(measure).result()
    assert found.layers[20].swap_kl == swap_kl["int3 weights"][20]
    assert found.layers[5].swap_kl == swap_kl["scaled norm"][5]
    assert found.layers[7].swap_kl == swap_kl["background"][7]
    ranked = sorted(found.layers, key=lambda row: -row.swap_kl)
    severe = sorted((20, 5), key=lambda layer: -found.layers[layer].swap_kl)
    assert [row.layer for row in ranked[:2]] == severe
    norm = max((row for row in found.modules if row.layer == 5), key=lambda row: row.swap_kl)
    assert norm.module == "post_attention_layernorm"


def test_the_layers_shares_of_int4_add_up_to_the_whole(engine, ids):
    exact, candidate = engine.load("smollm2-135m"), engine.load("smollm2-135m@int4")
    found = engine.call(LayerMeasurement(exact, candidate, [ids], modules_in=0).run).result()
    assert found.control == 0.0
    assert 0.8 <= found.additivity <= 1.1
    assert found.layers[-1].cum_kl == found.full_kl
