"""The place where numbers stop being numbers."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from reference_engine.engine import Engine
from reference_engine.nonfinite import locate_nonfinite
from reference_engine.position_scoring import position_blocks
from reference_engine.scoring import hidden_states
from ringtrue.errors import MeasureError

IDS = tuple(range(40, 70))


@pytest.fixture(scope="module")
def model(small_model: Path):
    with Engine(device="cpu") as engine:
        yield engine.load(str(small_model))


def _changed(model, change):
    network = copy.deepcopy(model.network)
    with torch.no_grad():
        change(network)
    return replace(model, network=network)


def test_a_sound_model_has_no_such_place(model):
    assert locate_nonfinite(model, IDS) is None


@pytest.mark.parametrize("path", ["self_attn.v_proj", "mlp.down_proj", "input_layernorm"])
def test_the_module_with_a_broken_weight_is_named_and_not_its_readers(model, path):
    def poison(network):
        network.model.layers[1].get_submodule(path).weight.view(-1)[7] = torch.nan

    found = locate_nonfinite(_changed(model, poison), IDS)
    assert (found.layer, found.module, found.kind) == (1, path, "NaN")


def test_the_first_position_that_overflows_is_named(model):
    def poison(network):
        network.model.embed_tokens.weight[IDS[11]] = torch.inf

    found = locate_nonfinite(_changed(model, poison), IDS)
    assert (found.layer, found.module, found.position, found.kind) == (None, "embed_tokens", 11, "Inf")
    assert str(found) == "Inf first appears in the output of embed_tokens at position 11"


def test_a_broken_head_is_named(model):
    def poison(network):
        network.lm_head.weight[3, 3] = torch.nan

    broken = _changed(model, poison)
    assert locate_nonfinite(broken, IDS).module == "the head"


def test_scoring_refuses_such_a_model_and_says_where(model):
    def poison(network):
        network.model.layers[2].mlp.gate_proj.weight[0, 0] = torch.inf

    broken = _changed(model, poison)
    with torch.inference_mode():
        hidden = hidden_states(broken, torch.tensor([IDS]))
        with pytest.raises(MeasureError, match=r"layer 2, mlp.gate_proj"):
            next(position_blocks(broken, IDS, hidden, k=3, states=False, rows_per_block=8))
