import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaForCausalLM

from reference_engine.engine import Engine
from reference_engine.models.embedded import embedded_file
from reference_engine.models.rounding import round_rows_to_float8, round_to_nearest
from reference_engine.models.sources import find_source
from reference_engine.models.variants import decoder_layers
from ringtrue.errors import ModelError


def _fingerprint(folder):
    source = find_source(str(folder))
    return source.fingerprint(source.weights_hash())


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


def test_float8_weights_are_rounded_in_float32_and_held_in_the_dtype(small_engine, small_model):
    exact = _weights(small_engine.load(str(small_model)))
    rounded = _weights(small_engine.load(f"{small_model}@fp8+bf16"))
    name = "model.layers.0.self_attn.q_proj.weight"
    assert torch.equal(rounded[name], round_rows_to_float8(exact[name]).bfloat16())


def test_a_group_size_is_taken(small_engine, small_model):
    name = "model.layers.0.mlp.down_proj.weight"
    exact = _weights(small_engine.load(str(small_model)))[name]
    for group in (32, 96):
        rounded = _weights(small_engine.load(f"{small_model}@int4:group={group}"))[name]
        assert torch.equal(rounded, round_to_nearest(exact, 4, group=group))


@pytest.mark.parametrize("size", [0, 100, 1_000_000, 20_000_000])
def test_a_truncated_gguf_file_is_named(small_engine, tmp_path, size):
    with embedded_file().open("rb") as stream:
        (tmp_path / "half.gguf").write_bytes(stream.read(size))
    with pytest.raises(ModelError, match=r"half\.gguf"):
        small_engine.load(str(tmp_path / "half.gguf"))


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


def test_the_fingerprint_covers_weights_configuration_tokenizer_and_template(small_model, tmp_path):
    original = _fingerprint(small_model)
    for file in ("model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"):
        copy = tmp_path / file
        shutil.copytree(small_model, copy)
        with (copy / file).open("ab") as stream:
            stream.write(b" ")
        assert _fingerprint(copy) != original


@pytest.mark.parametrize("kind", ["int4", "fp8-dynamic", "kv-fp8"])
def test_a_layer_that_is_not_there_is_named(small_engine, small_model, kind):
    with pytest.raises(ModelError, match=r"no layer 3.*0 to 2"):
        small_engine.load(f"{small_model}@{kind}:layers=3")


@pytest.mark.parametrize("name", ["no-such-model", "./nowhere", "missing.gguf", "a/b/c"])
def test_a_model_that_is_not_there_says_what_can_be_named(small_engine, name):
    with pytest.raises(ModelError, match="smollm2-135m, a Hugging Face id"):
        small_engine.load(name)


def test_a_folder_without_weights_says_so(small_engine, tmp_path):
    with pytest.raises(ModelError, match=r"no config\.json with \.safetensors"):
        small_engine.load(str(tmp_path))


def test_hashes_of_weights_tokenizer_and_template_are_apart(small_engine, small_model, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(small_model, other)
    (other / "chat_template.jinja").write_text("{{ messages }}")
    first, second = small_engine.load(str(small_model)), small_engine.load(str(other))
    assert first.weights_hash == second.weights_hash
    assert first.tokenizer_hash == second.tokenizer_hash
    assert first.template_hash != second.template_hash
    assert small_engine.load(f"{small_model}@int4").weights_hash != first.weights_hash


def test_weights_that_the_checkpoint_lacks_are_never_made_up(small_engine, small_model, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(small_model, other)
    tensors = load_file(other / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, other / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lacks model\.layers\.1\.mlp\.up_proj\.weight"):
        small_engine.load(str(other))


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
