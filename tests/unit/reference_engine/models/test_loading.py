import shutil

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from reference_engine.engine import Engine
from reference_engine.models.rounding import round_to_nearest
from reference_engine.models.sources import find_source
from reference_engine.models.variants import decoder_layers
from ringtrue.errors import ModelError


@pytest.fixture(scope="module")
def small_engine():
    with Engine(device="cpu") as engine:
        yield engine


def _weights(model):
    return dict(model.network.named_parameters())


def test_a_folder_is_loaded_with_its_tokenizer_and_limits(small_engine, small_model):
    model = small_engine.load(str(small_model))
    assert (model.context_length, model.vocabulary_size) == (256, 258)
    assert model.eos_ids == {model.codec.eos_id}
    assert model.codec.decode(model.codec.encode("héllo")) == "héllo"


def test_a_model_is_loaded_once(small_engine, small_model):
    assert small_engine.load(str(small_model)) is small_engine.load(f"{small_model}@fp32")


def test_a_rounded_variant_rounds_exactly_the_linear_weights_of_its_layers(small_engine, small_model):
    exact = _weights(small_engine.load(str(small_model)))
    rounded = _weights(small_engine.load(f"{small_model}@int4:layers=1"))
    for name, weight in exact.items():
        if "layers.1." in name and "norm" not in name:
            assert torch.equal(rounded[name], round_to_nearest(weight, 4))
        else:
            assert rounded[name] is weight  # shared, not copied


def test_a_rounded_bf16_variant_shares_what_it_can_with_the_bf16_one(small_engine, small_model):
    exact = _weights(small_engine.load(str(small_model)))
    half = _weights(small_engine.load(f"{small_model}@bf16"))
    rounded = _weights(small_engine.load(f"{small_model}@bf16+int3"))
    name = "model.layers.2.mlp.up_proj.weight"
    assert torch.equal(rounded[name], round_to_nearest(exact[name], 3).bfloat16())
    assert rounded["lm_head.weight"] is half["lm_head.weight"]
    assert rounded["model.norm.weight"] is half["model.norm.weight"]


def test_the_order_of_dtype_and_rounding_names_one_model(small_engine, small_model):
    first = small_engine.load(f"{small_model}@bf16+int3")
    assert small_engine.load(f"{small_model}@int3+bf16") is first


def test_a_dtype_variant_keeps_rotary_frequencies_in_float32(engine):
    model = engine.load("smollm2-135m@bf16")
    assert model.network.dtype == torch.bfloat16
    assert all(buffer.dtype == torch.float32 for buffer in model.network.buffers())
    assert model.network.lm_head.weight is model.network.model.embed_tokens.weight


def test_variants_have_fingerprints_of_their_own_and_reloading_has_the_same(small_engine, small_model):
    names = ["", "@bf16", "@int4", "@int4+bf16"]
    prints = [small_engine.load(f"{small_model}{name}").fingerprint for name in names]
    assert len(set(prints)) == 4
    with Engine(device="cpu") as other:
        assert other.load(f"{small_model}@int4").fingerprint == prints[2]


def test_the_fingerprint_covers_weights_tokenizer_and_template(small_model, tmp_path):
    original = find_source(str(small_model)).fingerprint()
    for file in ("model.safetensors", "tokenizer.json", "chat_template.jinja"):
        copy = tmp_path / file
        shutil.copytree(small_model, copy)
        with (copy / file).open("ab") as stream:
            stream.write(b" ")
        assert find_source(str(copy)).fingerprint() != original


def test_a_layer_that_is_not_there_is_named(small_engine, small_model):
    with pytest.raises(ModelError, match=r"no layer 3.*0 to 2"):
        small_engine.load(f"{small_model}@int4:layers=3")


@pytest.mark.parametrize("name", ["no-such-model", "./nowhere", "missing.gguf", "a/b/c"])
def test_a_model_that_is_not_there_says_what_can_be_named(small_engine, name):
    with pytest.raises(ModelError, match="smollm2-135m, a Hugging Face id"):
        small_engine.load(name)


def test_a_folder_without_weights_says_so(small_engine, tmp_path):
    with pytest.raises(ModelError, match=r"no config\.json with \.safetensors"):
        small_engine.load(str(tmp_path))


def test_broken_weights_are_a_clear_error(small_engine, small_model, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(small_model, broken)
    (broken / "model.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(ModelError, match="cannot be loaded"):
        small_engine.load(str(broken))


def test_an_architecture_with_an_unknown_head_is_refused(small_engine, small_model, tmp_path, monkeypatch):
    forward = LlamaForCausalLM.forward

    def doubled(self, *args, **kwargs):
        output = forward(self, *args, **kwargs)
        output.logits = output.logits * 2
        return output

    other = tmp_path / "other"
    shutil.copytree(small_model, other)
    monkeypatch.setattr(LlamaForCausalLM, "forward", doubled)
    with pytest.raises(ModelError, match="transforms its logits"):
        small_engine.load(str(other))


def test_loading_writes_nothing_to_the_terminal(small_model, capfd):
    with Engine(device="cpu") as engine:
        engine.load(str(small_model))
    assert capfd.readouterr() == ("", "")


async def test_precision_and_rounding_show_in_the_logprobs_as_published(engine, reference):
    countries = ("France", "Japan", "Peru", "Mali")
    ids = [reference.encode(f"The capital of {country} is") for country in countries]
    rows = [await reference.next_token(sequence) for sequence in ids]

    def mean_kl(name):
        model = engine.load(f"smollm2-135m@{name}")
        others = [engine.start_score(model, sequence).result() for sequence in ids]
        return np.mean([np.sum(np.exp(p) * (p - q)) for p, q in zip(rows, others, strict=True)])

    assert 1e-5 < mean_kl("bf16") < 0.01
    assert mean_kl("int8") < 0.01
    assert mean_kl("int4") > 0.05


def test_every_layer_is_found(engine):
    layers = decoder_layers(engine.load("smollm2-135m").network)
    assert len(layers) == 30
