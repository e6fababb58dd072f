"""Checkpoints as compressed-tensors and torchao write them, against the libraries' own forward pass."""

import json
import shutil
import sys

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from reference_engine.models import checkpoints as reading
from reference_engine.models.activations import InputRounding, RoundedExperts, RoundedLinear
from reference_engine.models.quiet import quiet_torchao
from reference_engine.models.rounding import round_rows_to_int8, round_to_nearest
from reference_engine.models.shards import read_shards, shard_files
from ringtrue.errors import ModelError
from tests.unit.reference_engine.models.conftest import MIXTURES, save_random

IDS = tuple(b"Hello world")  # as write_checkpoints.py has them
COMPRESSED = ("int4", "int4-asymmetric", "w8a8-int8", "w8a8-fp8", "w8a8-fp8-static")
TORCHAO = ("ao-int8", "ao-int4", "ao-w8a8-int8")
UP = "model.layers.1.mlp.up_proj"


def _logprobs(checkpoints, name):
    return load_file(checkpoints / f"{name}.logits")["logits"][0, -1].log_softmax(-1)


def _copy(checkpoints, name, tmp_path):
    copy = tmp_path / name
    shutil.copytree(checkpoints / name, copy)
    return copy


def _edit_quantization(folder, change):
    file = folder / "config.json"
    config = json.loads(file.read_text())
    change(config["quantization_config"])
    file.write_text(json.dumps(config))


@pytest.mark.parametrize("name", [*COMPRESSED, "ao-int8", "ao-int4"])
def test_a_checkpoint_scores_as_its_own_library_computes(small_engine, small_model, checkpoints, name):
    expected = _logprobs(checkpoints, name)
    row = torch.from_numpy(small_engine.start_score(small_engine.load(str(checkpoints / name)), IDS).result())
    exact = torch.from_numpy(small_engine.start_score(small_engine.load(str(small_model)), IDS).result())
    assert float((row - expected).abs().max()) < 1e-5
    assert float((exact - expected).abs().max()) > 1e-3


@pytest.mark.parametrize("name", TORCHAO)
def test_torchao_weights_are_what_torchao_dequantizes(small_engine, checkpoints, name):
    with quiet_torchao():
        from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict  # noqa: PLC0415
    held, _ = unflatten_tensor_state_dict(*read_shards(shard_files(checkpoints / name)))
    weights = dict(small_engine.load(str(checkpoints / name)).network.named_parameters())
    assert weights.keys() == held.keys()
    for key, tensor in held.items():
        dense = tensor if type(tensor) is torch.Tensor else tensor.dequantize()
        assert torch.equal(weights[key], dense), key


def test_activations_that_a_torchao_checkpoint_rounds_are_rounded_as_torchao_does(small_engine, checkpoints):
    network = small_engine.load(str(checkpoints / "ao-w8a8-int8")).network
    module = network.get_submodule(UP)
    assert isinstance(module, RoundedLinear)
    assert type(network.lm_head) is torch.nn.Linear
    with quiet_torchao():
        from torchao.quantization import Int8Tensor, PerRow  # noqa: PLC0415
    values = torch.randn(5, 64, generator=torch.Generator().manual_seed(2))
    values[torch.arange(5), values.abs().argmax(1)] = 4.0  # at -4 the libraries round the tie differently
    theirs = Int8Tensor.from_hp(values, PerRow()).dequantize()
    assert torch.allclose(module.input_rounding(values), theirs, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "kind", "static"),
    [("w8a8-int8", "int8", False), ("w8a8-fp8", "fp8", False), ("w8a8-fp8-static", "fp8", True)],
)
def test_activations_are_rounded_where_the_checkpoint_says(small_engine, checkpoints, name, kind, static):
    network = small_engine.load(str(checkpoints / name)).network
    scale = pytest.approx(0.01) if static else None
    assert network.get_submodule(UP).input_rounding == InputRounding(kind, scale)
    assert type(network.lm_head) is torch.nn.Linear


def test_a_checkpoint_takes_variants_like_any_model(small_engine, checkpoints):
    base = small_engine.load(str(checkpoints / "w8a8-fp8")).network.get_submodule(UP)
    rounded = small_engine.load(f"{checkpoints / 'w8a8-fp8'}@int4+bf16").network.get_submodule(UP)
    assert torch.equal(rounded.weight, round_to_nearest(base.weight, 4).bfloat16())
    assert rounded.input_rounding == InputRounding("fp8")


def test_modules_may_have_schemes_of_their_own(small_engine, checkpoints, tmp_path):
    folder = _copy(checkpoints, "int4", tmp_path)
    other = load_file(checkpoints / "w8a8-int8" / "model.safetensors")
    mixed = {k: v for k, v in load_file(folder / "model.safetensors").items() if not k.startswith(UP)}
    mixed |= {k: v for k, v in other.items() if k.startswith(UP)}
    save_file(mixed, folder / "model.safetensors", metadata={"format": "pt"})
    eight = json.loads((checkpoints / "w8a8-int8" / "config.json").read_text())["quantization_config"]

    def mix(config):
        special = eight["config_groups"]["group_0"] | {"targets": [f"re:.*{UP.removeprefix('model.')}"]}
        config["config_groups"] = {"first": special, **config["config_groups"]}
        config["format"] = "mixed-precision"

    _edit_quantization(folder, mix)
    network = small_engine.load(str(folder)).network
    eight_bits = small_engine.load(str(checkpoints / "w8a8-int8")).network
    four_bits = small_engine.load(str(checkpoints / "int4")).network
    down = UP.replace("up_proj", "down_proj")
    assert torch.equal(network.get_submodule(UP).weight, eight_bits.get_submodule(UP).weight)
    assert torch.equal(network.get_submodule(down).weight, four_bits.get_submodule(down).weight)
    assert network.get_submodule(UP).input_rounding == InputRounding("int8")
    assert type(network.get_submodule(down)) is torch.nn.Linear


def test_experts_that_are_linear_layers_in_the_checkpoint_are_stacked_and_their_inputs_rounded(
    small_engine, checkpoints, tmp_path
):
    folder = save_random(MIXTURES["qwen3_moe"](), tmp_path)
    exact = small_engine.load(str(folder)).layers[1].mlp.experts.gate_up_proj.clone()
    tensors = load_file(folder / "model.safetensors")
    for name in [name for name in tensors if ".experts." in name]:
        weight = tensors.pop(name)
        scale = weight.abs().amax(dim=1, keepdim=True) / 127
        tensors[name] = (weight / scale).round().to(torch.int8)
        tensors[f"{name}_scale"] = scale
    quantized = tmp_path / "quantized"
    shutil.copytree(folder, quantized, ignore=shutil.ignore_patterns("quantized"))
    save_file(tensors, quantized / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((quantized / "config.json").read_text())
    asked = json.loads((checkpoints / "w8a8-int8" / "config.json").read_text())
    config["quantization_config"] = asked["quantization_config"]
    (quantized / "config.json").write_text(json.dumps(config))
    experts = small_engine.load(str(quantized)).layers[1].mlp.experts
    assert torch.allclose(experts.gate_up_proj, round_rows_to_int8(exact), atol=1e-7)
    assert isinstance(experts, RoundedExperts)
    assert experts.input_rounding == InputRounding("int8")
    assert type(small_engine.load(str(quantized)).layers[1].self_attn.q_proj) is torch.nn.Linear


@pytest.mark.parametrize("method", ["gptq", "awq", "bitsandbytes"])
def test_another_method_is_named_with_what_to_do(small_engine, checkpoints, tmp_path, method):
    folder = _copy(checkpoints, "int4", tmp_path)
    _edit_quantization(folder, lambda config: config.update(quant_method=method))
    with pytest.raises(ModelError, match=rf"quantized with {method}.*compressed-tensors and torchao"):
        small_engine.load(str(folder))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"strategy": "token", "dynamic": True, "num_bits": 4}, "activations to 4 bits"),
        ({"strategy": "token", "dynamic": True, "symmetric": False}, "symmetric: False"),
        ({"strategy": "tensor", "dynamic": True}, "by tensor"),
    ],
)
def test_activations_that_cannot_be_reproduced_are_refused(
    small_engine, checkpoints, tmp_path, change, words
):
    folder = _copy(checkpoints, "w8a8-int8", tmp_path)
    _edit_quantization(
        folder, lambda config: config["config_groups"]["group_0"]["input_activations"].update(change)
    )
    with pytest.raises(ModelError, match=f"{words}.*not reproduced"):
        small_engine.load(str(folder))


def test_a_quantized_cache_is_refused_rather_than_ignored(small_engine, checkpoints, tmp_path):
    folder = _copy(checkpoints, "int4", tmp_path)
    scheme = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False}
    _edit_quantization(folder, lambda config: config.update(kv_cache_scheme=scheme))
    with pytest.raises(ModelError, match=r"kv_cache_scheme.*kv-fp8"):
        small_engine.load(str(folder))


@pytest.mark.parametrize(("name", "library"), [("int4", "compressed_tensors"), ("ao-int8", "torchao")])
def test_a_missing_library_says_how_to_install_it(small_engine, checkpoints, monkeypatch, name, library):
    module = "compressed_tensors_files" if name == "int4" else "torchao_files"
    for loaded in [key for key in sys.modules if key.split(".")[0] == library]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"reference_engine.models.{module}", raising=False)
    with pytest.raises(ModelError, match=rf"package {library}.*ringtrue\[checkpoints\]"):
        reading.read_dense(
            shard_files(checkpoints / name), reading.quantization_config(checkpoints / name), name
        )


@pytest.mark.parametrize("name", ["int4", "ao-int8"])
def test_a_tensor_that_is_missing_or_left_over_is_named(small_engine, checkpoints, tmp_path, name):
    folder = _copy(checkpoints, name, tmp_path)
    file = folder / "model.safetensors"
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata()
    tensors = load_file(file)
    removed = next(key for key in sorted(tensors) if UP in key and key.endswith(("packed", "qdata")))
    kept = {key: tensor for key, tensor in tensors.items() if key != removed}
    save_file(kept, file, metadata=metadata)
    with pytest.raises(ModelError, match="up_proj"):
        small_engine.load(str(folder))


def test_loading_a_checkpoint_of_torchao_writes_nothing_to_the_terminal(checkpoints, capfd):
    from reference_engine.engine import Engine  # noqa: PLC0415

    with Engine(device="cpu") as engine:
        engine.load(str(checkpoints / "ao-int8"))
        engine.load(str(checkpoints / "int4"))
    assert capfd.readouterr() == ("", "")
