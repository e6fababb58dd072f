"""``ringtrue layers`` on a small model on disk."""

import json
import shutil

import pytest

from ringtrue.cli import COMMANDS, run

TOKENS = ("--length", "64", "--sequences", "2")


def test_json_names_every_layer_and_the_control_is_zero(small_model, capsys, tmp_path):
    picture = tmp_path / "layers.png"
    arguments = [str(small_model), f"{small_model}@int4", *TOKENS, "-f", "json", "--png", str(picture)]
    assert run(COMMANDS, ["layers", *arguments]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [row["layer"] for row in body["layers"]] == [0, 1, 2]
    assert body["control"] == 0.0
    assert body["positions"] == 128
    assert {"swap_kl", "cum_kl", "sqnr_db", "cosine"} <= body["layers"][0].keys()
    assert picture.stat().st_size > 10_000


def test_a_corpus_of_ones_own_is_used(small_model, capsys, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"token_ids": [50, 51, 52, 53]}\n{"token_ids": [60, 61]}\n')
    arguments = [str(small_model), f"{small_model}@int8", "--corpus", str(corpus), "--format", "json"]
    assert run(COMMANDS, ["layers", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["positions"] == 6


def test_a_candidate_of_another_architecture_is_named(small_model, capsys, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(small_model, other)
    config = json.loads((other / "config.json").read_text())
    config["num_attention_heads"] = 2
    config["head_dim"] = 32
    config["num_key_value_heads"] = 1
    (other / "config.json").write_text(json.dumps(config))
    assert run(COMMANDS, ["layers", str(small_model), str(other), *TOKENS]) == 2
    assert "num_attention_heads" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--png", "layers.jpg"), ".png"),
        (("--length", "300"), "256"),
        (("--corpus", "missing.txt"), "missing.txt"),
    ],
)
def test_what_cannot_be_used_is_an_error_with_code_2(small_model, capsys, options, words):
    assert run(COMMANDS, ["layers", str(small_model), f"{small_model}@int8", *options]) == 2
    assert words in capsys.readouterr().err
