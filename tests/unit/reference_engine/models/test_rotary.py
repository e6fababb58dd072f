import shutil

import numpy as np
import orjson
import pytest
import torch
from transformers import GPT2Config, LlamaForCausalLM
from transformers.models.gemma3.configuration_gemma3 import Gemma3TextConfig

from ringtrue.errors import ModelError
from tests.unit.reference_engine.models.conftest import save_random

IDS = tuple(range(40, 240))
OWN = 10_000  # transformers' default, which the small model leaves as it is


def _rows(engine, name, ids=IDS):
    model = engine.load(name)
    return engine.call(lambda: _logprobs(model, ids)).result()


def _logprobs(model, ids):
    with torch.inference_mode():
        return torch.log_softmax(model.network(torch.tensor([ids])).logits[0], dim=-1)


def _with_config(small_model, folder, **changes):
    shutil.copytree(small_model, folder)
    config = orjson.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_bytes(orjson.dumps(config | changes))
    return folder


def test_the_model_s_own_base_changes_no_bit(small_engine, small_model):
    assert torch.equal(
        _rows(small_engine, f"{small_model}@rope:base={OWN}"), _rows(small_engine, str(small_model))
    )


def test_the_embedded_model_s_own_base_changes_no_bit(engine, reference):
    ids = reference.encode("The capital of France is Paris, and the capital of Peru is")
    own = engine.load("smollm2-135m").network.config.rope_parameters["rope_theta"]
    rows = [
        engine.start_score(engine.load(name), ids).result()
        for name in ("smollm2-135m", f"smollm2-135m@rope:base={own:g}")
    ]
    assert np.array_equal(*rows)


def test_another_base_is_the_model_that_transformers_builds_with_it(small_engine, small_model, tmp_path):
    rope = {"rope_theta": 700.0, "rope_type": "default"}
    other = LlamaForCausalLM.from_pretrained(
        _with_config(small_model, tmp_path / "other", rope_parameters=rope), dtype=torch.float32
    )
    with torch.inference_mode():
        expected = torch.log_softmax(other.eval()(torch.tensor([IDS])).logits[0], dim=-1)
    assert torch.equal(_rows(small_engine, f"{small_model}@rope:base=700"), expected)


def test_the_difference_grows_with_the_position(small_engine, small_model):
    exact = _rows(small_engine, str(small_model))
    turned = _rows(small_engine, f"{small_model}@rope:base=11000")
    off = (turned - exact).abs().amax(dim=1)
    assert off[0] == 0  # position 0 is not turned
    assert off[100:].mean() > 2 * off[1:20].mean()


def test_every_weight_is_shared_and_the_base_model_stays_as_it_was(small_engine, small_model):
    exact = small_engine.load(str(small_model))
    before = _rows(small_engine, str(small_model))
    turned = small_engine.load(f"{small_model}@rope:base=333")
    weights = dict(exact.network.named_parameters())
    assert all(weight is weights[name] for name, weight in turned.network.named_parameters())
    assert exact.network.config.rope_parameters["rope_theta"] == OWN
    assert torch.equal(_rows(small_engine, str(small_model)), before)


def test_another_base_stands_beside_rounding_and_dtype(small_engine, small_model):
    both = small_engine.load(f"{small_model}@rope:base=333+int4+bf16")
    turned = small_engine.load(f"{small_model}@rope:base=333")
    rounded = small_engine.load(f"{small_model}@int4+bf16")
    for (_, left), (_, right) in zip(
        both.network.named_buffers(), turned.network.named_buffers(), strict=True
    ):
        assert torch.equal(left, right)
    for left, right in zip(both.network.parameters(), rounded.network.parameters(), strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_theta": 10_000.0, "rope_type": "linear", "factor": 2.0},
        {"rope_theta": 10_000.0, "rope_type": "dynamic", "factor": 2.0},
    ],
)
def test_scaled_frequencies_are_refused(small_engine, small_model, tmp_path, rope):
    folder = _with_config(small_model, tmp_path / "scaled", rope_parameters=rope)
    with pytest.raises(ModelError, match=f"one plain base .{rope['rope_type']}"):
        small_engine.load(f"{folder}@rope:base=333")


@pytest.mark.parametrize(
    "config",
    [
        GPT2Config(vocab_size=258, n_positions=64, n_embd=64, n_layer=2, n_head=4),
        Gemma3TextConfig(
            vocab_size=258,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=64,
        ),
    ],
    ids=["no rotary embeddings", "a base for each kind of layer"],
)
def test_a_model_without_one_list_of_frequencies_is_refused(small_engine, tmp_path, config):
    with pytest.raises(ModelError, match="no rotary embeddings"):
        small_engine.load(f"{save_random(config, tmp_path)}@rope:base=333")
