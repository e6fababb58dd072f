import pytest
import torch
from torch import nn
from transformers import GPT2Config

from reference_engine.models.gguf_types import round_to_gguf
from reference_engine.models.matrices import layer_matrices, require_matrices
from reference_engine.models.rounding import round_to_nearest
from ringtrue.errors import ModelError
from tests.unit.reference_engine.models.conftest import save_random


def test_a_dense_layer_has_its_seven_matrices(small_engine, small_model):
    layer = small_engine.load(str(small_model)).layers[0]
    found = {id(matrix.weight) for matrix in layer_matrices(layer, 64)}
    assert found == {id(p) for name, p in layer.named_parameters() if "norm" not in name}


@pytest.mark.parametrize(
    ("kind", "rounding"),
    [("int4", lambda w: round_to_nearest(w, 4)), ("q4_0", lambda w: round_to_gguf(w, "q4_0"))],
)
def test_matrices_that_lie_transposed_are_rounded_along_their_input(small_engine, tmp_path, kind, rounding):
    config = GPT2Config(vocab_size=258, n_embd=64, n_layer=2, n_head=4, n_positions=256)
    folder = save_random(config, tmp_path)
    exact, rounded = (small_engine.load(f"{folder}{v}").layers[1] for v in ("", f"@{kind}"))
    before, after = exact.mlp.c_fc.weight, rounded.mlp.c_fc.weight
    assert before.shape == (64, 256)
    assert torch.equal(after, rounding(before.T.contiguous()).T)


def test_layers_whose_weights_are_elsewhere_are_refused():
    layers = nn.ModuleList([nn.ModuleList([nn.Linear(4, 4), nn.Conv1d(8, 8, 3)])])
    with pytest.raises(ModelError, match=r"m: only 7% of the layers' weights.*dtype or a cache variant"):
        require_matrices(layers, 4, "m")
