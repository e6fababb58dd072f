import copy

import pytest
import torch
from torch import nn

from reference_engine.models.activations import InputRounding, RoundedLinear, round_inputs
from reference_engine.models.rounding import round_rows_to_float8
from ringtrue.errors import ModelError


def _values(rows=4):
    return torch.randn(rows, 16, generator=torch.Generator().manual_seed(5))


def test_a_token_has_a_scale_of_its_own():
    values = _values() * torch.tensor([[1.0], [1e3], [1e-3], [1.0]])
    for kind in ("fp8", "int8"):
        rounded = InputRounding(kind)(values)
        assert torch.equal(rounded, torch.cat([InputRounding(kind)(row[None]) for row in values]))
        assert bool(((rounded - values).abs() <= values.abs().amax(dim=1, keepdim=True) / 16).all())


def test_a_static_scale_saturates_what_does_not_fit():
    values = torch.tensor([[0.5, 448.0, 1e6, -1e6]])
    assert InputRounding("fp8", 1.0)(values).tolist() == [[0.5, 448.0, 448.0, -448.0]]
    assert InputRounding("int8", 0.5)(values).tolist() == [[0.5, 63.5, 63.5, -64.0]]


def test_a_rounded_linear_layer_multiplies_the_rounded_input():
    layer = nn.Linear(16, 3)
    values = _values()
    with torch.no_grad():
        expected = layer(round_rows_to_float8(values))
        round_inputs(layer, InputRounding("fp8"))
        assert torch.equal(layer(values), expected)


def test_a_rounded_layer_survives_copying_and_moving():
    block = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16))
    names = [name for name, _ in block.named_parameters()]
    round_inputs(block[0], InputRounding("fp8"))
    twin = copy.deepcopy(block)
    twin[1] = twin[0]
    assert [name for name, _ in block.named_parameters()] == names
    assert all(isinstance(module, RoundedLinear) for module in twin)
    with torch.no_grad():
        assert torch.equal(twin[0](_values()), block[0](_values()))


def test_a_module_that_cannot_round_its_inputs_is_named():
    with pytest.raises(ModelError, match="Conv1d"):
        round_inputs(nn.Conv1d(2, 2, 1), InputRounding("fp8"))


def test_dynamic_float8_shares_nothing_of_its_rounding_with_other_variants(small_engine, small_model):
    model = small_engine.load(f"{small_model}@fp8-dynamic:layers=1")
    kinds = [type(layer.mlp.up_proj) for layer in model.layers]
    assert kinds == [nn.Linear, RoundedLinear, nn.Linear]
    assert type(small_engine.load(f"{small_model}@fp8").layers[1].mlp.up_proj) is nn.Linear
    assert (
        model.layers[0].mlp.up_proj.weight is small_engine.load(str(small_model)).layers[0].mlp.up_proj.weight
    )
