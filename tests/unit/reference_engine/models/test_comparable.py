import json
import shutil
from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from reference_engine.models.codec import TokenCodec
from reference_engine.models.comparable import require_comparable
from ringtrue.errors import ModelError
from tests.small_models import byte_level_tokenizer
from tests.unit.reference_engine.models.conftest import MIXTURES, save_random


def _llama(folder, **options):
    shape = {
        "vocab_size": 258,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
    }
    with torch.random.fork_rng():
        torch.manual_seed(8)
        LlamaForCausalLM(LlamaConfig(**shape | options)).save_pretrained(folder)
    byte_level_tokenizer().save_pretrained(folder)
    return str(folder)


def test_a_variant_and_another_checkpoint_of_the_architecture_pass(small_engine, small_model, tmp_path):
    reference = small_engine.load(str(small_model))
    for name in (f"{small_model}@int4+bf16", _llama(tmp_path)):
        candidate = small_engine.load(name)
        require_comparable(reference, candidate)
        require_comparable(candidate, reference)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_hidden_layers": 2}, "num_hidden_layers is 3 and 2"),
        ({"num_key_value_heads": 4}, "num_key_value_heads is 2 and 4"),
        ({"mlp_bias": True}, r"layer weight 0\.mlp\.down_proj\.bias is None and \(64,\)"),
        ({"vocab_size": 300}, "vocabularies have 258 and 300 tokens"),
    ],
)
def test_what_differs_is_named_with_both_models(small_engine, small_model, tmp_path, options, words):
    other = _llama(tmp_path, **options)
    with pytest.raises(ModelError, match=words) as caught:
        require_comparable(small_engine.load(str(small_model)), small_engine.load(other))
    assert str(small_model) in caught.value.where
    assert other in caught.value.where
    assert caught.value.remedy


def test_another_model_type_is_named(small_engine, small_model, tmp_path):
    other = save_random(MIXTURES["mixtral"](), tmp_path)
    with pytest.raises(ModelError, match="model_type is llama and mixtral"):
        require_comparable(small_engine.load(str(small_model)), small_engine.load(str(other)))


def test_another_tokenizer_is_named_by_its_first_differing_token(small_engine, small_model, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(small_model, folder)
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["A"], vocabulary["B"] = vocabulary["B"], vocabulary["A"]
    file.write_text(json.dumps(tokenizer))
    with pytest.raises(ModelError, match=r"differ in 2 IDs, the first is \d+: 'A' and 'B'"):
        require_comparable(small_engine.load(str(small_model)), small_engine.load(str(folder)))


def test_ids_that_only_one_tokenizer_knows_are_no_difference(small_engine, small_model):
    model = small_engine.load(str(small_model))
    padded = byte_level_tokenizer()
    padded.add_tokens(["[PAD258]"])
    require_comparable(model, replace(model, codec=TokenCodec(padded)))
