import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from ringtrue.errors import ModelError


@pytest.fixture
def sharded(small_model, tmp_path):
    """The small model in two shards with an index."""
    folder = tmp_path / "sharded"
    shutil.copytree(small_model, folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    halves = {
        "model-00001-of-00002.safetensors": names[:15],
        "model-00002-of-00002.safetensors": names[15:],
    }
    for file, held in halves.items():
        save_file({name: tensors[name] for name in held}, folder / file, metadata={"format": "pt"})
    weight_map = {name: file for file, held in halves.items() for name in held}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map})
    )
    return folder


def test_a_sharded_model_is_the_same_model(small_engine, small_model, sharded):
    one, two = (dict(small_engine.load(str(f)).network.named_parameters()) for f in (small_model, sharded))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_missing_shard_is_named(small_engine, sharded):
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model-00002-of-00002\.safetensors: .*missing"):
        small_engine.load(str(sharded))


@pytest.mark.parametrize("keep", [0, 5, 300, -8])
def test_a_truncated_shard_is_named(small_engine, sharded, keep):
    file = sharded / "model-00001-of-00002.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"model-00001-of-00002\.safetensors: .*damaged"):
        small_engine.load(str(sharded))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weight_map": 3}'])
def test_a_broken_index_is_named(small_engine, sharded, content):
    (sharded / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ModelError, match=r"index\.json: the index of the shards is damaged"):
        small_engine.load(str(sharded))


def test_a_broken_configuration_is_named(small_engine, sharded):
    (sharded / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json: the configuration cannot be read"):
        small_engine.load(str(sharded))
