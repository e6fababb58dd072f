"""``ringtrue compare`` on small models on disk."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from ringtrue.cli import COMMANDS, run
from tests.small_models import byte_level_tokenizer

SHORT = ("--length", "40", "--sequences", "8", "--format", "json")


def save_model(folder: Path, **changes: int) -> Path:
    tokenizer = byte_level_tokenizer()
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": len(tokenizer)} | changes
    config = LlamaConfig(
        intermediate_size=96,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **shape,
    )
    with torch.random.fork_rng():
        torch.manual_seed(7)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def tuned(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with one norm scaled: another checkpoint of the architecture."""
    folder = tmp_path_factory.mktemp("tuned") / "model"
    shutil.copytree(model, folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.0.input_layernorm.weight"] *= 3
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    capsys.readouterr()  # what saving models said
    return capsys


def test_a_candidate_is_measured_and_the_result_alone_is_on_stdout(
    model: Path, tuned: Path, said: pytest.CaptureFixture[str]
) -> None:
    assert run(COMMANDS, ["compare", str(model), str(tuned), *SHORT]) == 0

    captured = said.readouterr()
    body = json.loads(captured.out)
    assert (body["sequences"], body["positions"]) == (8, 8 * 39)
    assert body["kl"]["mean"]["low"] > 10 * body["floor"]["mean"]["value"] > 0
    assert body["candidate"]["name"] == str(tuned)
    assert body["candidate"]["fingerprint"] != body["reference"]["fingerprint"]
    assert "comparing: 320 of 320" in captured.err
    assert "noise floor in bf16: 320 of 320" in captured.err


def test_a_model_against_itself_is_zero_and_within_any_budget(
    model: Path, said: pytest.CaptureFixture[str]
) -> None:
    options = ["--floor", "none", "--budget", "0"]
    assert run(COMMANDS, ["compare", str(model), str(model), *SHORT, *options]) == 0

    body = json.loads(said.readouterr().out)
    assert body["kl"]["maximum"]["value"] == 0
    assert body["same_top"]["value"] == 100
    assert body["budget"]["outcome"] == "within"


def test_beyond_the_budget_is_1_and_too_few_sequences_are_3(
    model: Path, tuned: Path, said: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", str(model), str(tuned), *SHORT, "--floor", "none", "--budget", "1e-9"]

    assert run(COMMANDS, arguments) == 1
    assert json.loads(said.readouterr().out)["budget"]["outcome"] == "beyond"
    assert run(COMMANDS, [*arguments, "--sequences", "2"]) == 3
    body = json.loads(said.readouterr().out)
    assert body["budget"]["outcome"] == "unmeasured"
    assert body["kl"]["mean"]["low"] is None


def test_a_corpus_of_token_ids_is_used_whole_or_from_its_start(
    model: Path, tuned: Path, tmp_path: Path, said: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "ids.jsonl"
    corpus.write_text("".join(f"{[i, 2, 3, *range(40, 60 + i)]}\n" for i in range(9)))
    arguments = ["compare", str(model), str(tuned), "--corpus", str(corpus), "-f", "json", "--skip", "20"]

    assert run(COMMANDS, arguments) == 0
    body = json.loads(said.readouterr().out)
    assert (body["sequences"], body["positions"], body["skip"]) == (9, sum(2 + i for i in range(9)), 20)
    assert body["corpus"] == str(corpus)
    assert [bucket["first"] for bucket in body["context"]["buckets"]] == [16]
    assert run(COMMANDS, [*arguments, "--sequences", "3"]) == 0
    assert json.loads(said.readouterr().out)["sequences"] == 3


def test_the_same_seed_gives_the_same_report(
    model: Path, tuned: Path, said: pytest.CaptureFixture[str]
) -> None:
    reports = []
    for seed in ("1", "1", "2"):
        assert run(COMMANDS, ["compare", str(model), str(tuned), *SHORT, "--draws", "2", "--seed", seed]) == 0
        reports.append(json.loads(said.readouterr().out))

    assert reports[0] == reports[1]
    assert reports[0]["kl"] != reports[2]["kl"]
    first, second = reports[0]["floor"]["draws"]
    assert first != second


def test_a_baseline_gives_what_its_model_gives(
    model: Path, tuned: Path, tmp_path: Path, said: pytest.CaptureFixture[str]
) -> None:
    corpus, store = tmp_path / "ids.jsonl", tmp_path / "baselines"
    corpus.write_text("".join(f"{[i, 2, 3, *range(40, 60)]}\n" for i in range(8)))
    build = ["baseline", "build", str(model), str(corpus), "--store", str(store), "--states", "--k", "5"]
    assert run(COMMANDS, build) == 0
    (built,) = (folder.name for folder in store.iterdir() if not folder.name.startswith("."))
    said.readouterr()

    stored = ["--baseline", built[:10], "--store", str(store)]
    reports = []
    for source in (stored, ["--corpus", str(corpus)]):
        assert run(COMMANDS, ["compare", str(model), str(tuned), *source, "-f", "json"]) == 0
        reports.append(json.loads(said.readouterr().out))

    assert reports[0].pop("corpus") == f"baseline {built[:10]}"
    assert reports[1].pop("corpus") == str(corpus)
    assert reports[0] == reports[1]
    assert run(COMMANDS, ["compare", str(tuned), str(model), *stored]) == 2
    assert "other weights" in said.readouterr().err


def test_the_table_says_what_the_json_says(
    model: Path, tuned: Path, said: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", str(model), str(tuned), "--length", "40", "--sequences", "8", "--floor", "none"]
    assert run(COMMANDS, [*arguments, "-f", "json"]) == 0
    body = json.loads(said.readouterr().out)
    assert run(COMMANDS, arguments) == 0

    table = said.readouterr().out
    assert f"{body['kl']['p99']['value']:.4g}" in table
    assert f"{body['delta_p']['rms']['value']:.3f}" in table


def test_errors_are_one_line_that_names_what_to_do(
    model: Path, tuned: Path, tmp_path: Path, said: pytest.CaptureFixture[str]
) -> None:
    other = save_model(tmp_path / "other", hidden_size=32)
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    cases = [
        (["nowhere", str(model)], 2, "there is no model 'nowhere'"),
        ([str(model), f"{model}@int5"], 2, "int5"),
        ([str(model), str(other)], 2, "hidden_size is 64 and 32"),
        ([str(model), str(tuned), "--length", "300"], 2, "300 tokens are longer than the model's context"),
        ([str(model), str(tuned), "--length", "40", "--skip", "39"], 2, "Lower --skip"),
        ([str(model), str(tuned), "--corpus", str(empty)], 2, "the corpus is empty"),
        ([str(model), str(tuned), "--corpus", str(tmp_path / "no.txt")], 2, "the corpus cannot be read"),
        ([str(model), str(tuned), "--baseline", "ab", "--corpus", str(empty)], 2, "not both"),
        ([str(model), str(tuned), "--baseline", "ab", "--store", str(tmp_path)], 2, "ab"),
        ([str(model), str(tuned), "--device", "tape"], 2, "the device cannot be used"),
        ([str(model), str(tuned), "--floor", "int8"], 2, "--floor"),
    ]
    said.readouterr()
    for arguments, code, message in cases:
        assert run(COMMANDS, ["compare", *arguments]) == code, arguments
        captured = said.readouterr()
        assert message in captured.err, (arguments, captured.err)
        assert captured.out == ""


def test_broken_weights_are_3_and_located(
    model: Path, tmp_path: Path, said: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(model, folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.self_attn.v_proj.weight"][0, 0] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    assert run(COMMANDS, ["compare", str(model), str(folder), *SHORT]) == 3

    captured = said.readouterr()
    assert "layer 1, self_attn.v_proj at position 0" in captured.err
    assert captured.out == ""


def test_importing_the_command_imports_no_torch() -> None:
    probe = "import sys, evals.compare.commands; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
