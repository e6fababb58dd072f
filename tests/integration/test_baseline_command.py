"""``ringtrue baseline``: as a process that is killed, and the command itself with a small model on disk."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ringtrue.cli import COMMANDS, run

BUILD = """
import sys
from pathlib import Path
from rich.console import Console
from evals.baseline.building import run_interruptibly
from reference_engine.baselines.building import Build, build_baseline
from reference_engine.baselines.corpus_files import read_corpus
from reference_engine.baselines.exact import ExactScores, exact_request
from reference_engine.baselines.plan import Layout
from reference_engine.baselines.store import BaselineStore
from reference_engine.engine import Engine
from ringtrue.progress import Lines


class Told(Lines):
    def advance(self, name, steps=1):
        print("advanced", flush=True)


folder, corpus, root = map(Path, sys.argv[1:])
with Engine(device="cpu") as engine:
    model = engine.load(str(folder))
    sequences = read_corpus([corpus], model)
    layout = Layout(block_bytes=100_000, shard_rows=400)
    build = Build(sequences, exact_request(model, sequences, k=200, states=True, layout=layout))
    source, told = ExactScores(engine, model), Told(Console(stderr=True))
    stored, _ = run_interruptibly(build_baseline(build, source, BaselineStore(root), told))
    print(stored.id)
"""
SEQUENCES = 60


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    rng = np.random.default_rng(11)
    file = tmp_path_factory.mktemp("corpus") / "ids.jsonl"
    lines = [rng.integers(256, size=length).tolist() for length in rng.integers(60, 240, size=SEQUENCES)]
    file.write_text("".join(f"{json.dumps(ids)}\n" for ids in lines))
    return file


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def start(*arguments) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", BUILD, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def stopped_at(process: subprocess.Popen[str], store: Path, shards: int, by: signal.Signals) -> int:
    """Stop the build as soon as so many shards are there; return how many there were in the end."""
    while len(list(store.glob(".partial-*/*.parquet"))) < shards:
        assert process.stdout.readline() == "advanced\n", process.stderr.read()
    process.send_signal(by)
    _, errors = process.communicate(timeout=60)
    # After SIGTERM it ends as after Ctrl-C.
    assert process.returncode == -(by if by is signal.SIGKILL else signal.SIGINT), errors
    return len(list(store.glob(".partial-*/*.parquet")))


def test_a_build_that_is_killed_again_and_again_ends_with_the_bytes_of_one_that_was_not(
    small_model,
    corpus,
    tmp_path,
):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    whole = start(small_model, corpus, undisturbed)
    output, errors = whole.communicate(timeout=120)
    assert whole.returncode == 0, errors
    identity = output.split()[-1]
    shards = len(list((undisturbed / identity).glob("*.parquet")))
    assert shards > 20
    reached = 0
    for more, by in ((1, signal.SIGKILL), (4, signal.SIGKILL), (3, signal.SIGTERM), (1, signal.SIGKILL)):
        reached = stopped_at(start(small_model, corpus, killed), killed, reached + more, by)
        assert not any(len(entry.name) == 64 for entry in killed.iterdir()), "it ended before it was stopped"
    last = start(small_model, corpus, killed)
    output, errors = last.communicate(timeout=120)
    assert (last.returncode, output.split()[-1]) == (0, identity), errors
    assert f"going on from {reached} of {shards} shards" in errors
    assert contents(killed) == contents(undisturbed)


@pytest.fixture(scope="module")
def built(small_model, corpus, tmp_path_factory) -> Path:
    store = tmp_path_factory.mktemp("store")
    arguments = ["build", str(small_model), str(corpus), "--states", "--k", "5", "--device", "cpu"]
    assert run(COMMANDS, ["baseline", *arguments, "--store", str(store)]) == 0
    return store


def only(store: Path) -> str:
    (found,) = (entry.name for entry in store.iterdir())
    return found


def test_build_announces_its_cost_on_stderr_and_prints_the_result_alone(
    small_model,
    here,
    capsys,
):
    (here / "a.txt").write_text("abcdefgh" * 10)
    command = ["baseline", "build", str(small_model), "a.txt", "--length", "32", "--device", "cpu"]
    assert run(COMMANDS, [*command, "--format", "json"]) == 0
    output, errors = capsys.readouterr()
    body = json.loads(output)
    identity = only(here / "baselines")
    assert (body["schema"], body["built"]) == (1, True)
    assert body["baseline"] == {
        "id": identity,
        "model": str(small_model),
        "dtype": "fp32",
        "source": "exact",
        "sequences": 3,
        "tokens": 80,
        "k": 20,
        "states": None,
        "size": sum(file.stat().st_size for file in Path("baselines", identity).glob("*.parquet")),
    }
    assert "3 sequences of 80 tokens, 77 positions to score with k = 20; about 15.7 kB in 1 shard" in errors
    assert run(COMMANDS, command) == 0
    output, errors = capsys.readouterr()
    assert "it was there already" in output
    assert identity[:12] in output


def test_the_whole_vocabulary_is_asked_for_by_a_word(small_model, here, capsys):
    Path("ids.jsonl").write_text("[1, 2, 3]\n")
    command = ["baseline", "build", str(small_model), "ids.jsonl", "--k", "all", "-f", "json"]
    assert run(COMMANDS, command) == 0
    assert json.loads(capsys.readouterr().out)["baseline"]["k"] == 258


def test_list_and_show_print_what_is_there_in_every_form(built, capsys):
    identity = only(built)
    for form in ("table", "markdown"):
        assert run(COMMANDS, ["baseline", "list", "--store", str(built), "-f", form]) == 0
        output = capsys.readouterr().out
        assert identity[:12] in output
        assert "float32" in output
        assert run(COMMANDS, ["baseline", "show", identity[:5], "--store", str(built), "-f", form]) == 0
        assert identity in capsys.readouterr().out.replace("\n", "")
    assert run(COMMANDS, ["baseline", "list", "--store", str(built), "-f", "json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["baselines"]
    assert (listed["id"], listed["k"], listed["sequences"]) == (identity, 5, SEQUENCES)
    assert run(COMMANDS, ["baseline", "show", identity[:5], "--store", str(built), "-f", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["schema"], shown["id"], shown["request"]["k"]) == (1, identity, 5)
    assert sum(shard["rows"] for shard in shown["shards"]) == listed["tokens"]


def test_an_empty_store_is_no_error(here, capsys):
    assert run(COMMANDS, ["baseline", "list"]) == 0
    assert capsys.readouterr().out == "No baselines in baselines.\n"


def test_verify_recomputes_a_sample_and_says_that_it_is_equal(built, capsys):
    command = ["baseline", "verify", only(built)[:8], "--store", str(built), "--device", "cpu"]
    assert run(COMMANDS, [*command, "--recompute", "3"]) == 0
    output, errors = capsys.readouterr()
    assert output.count("equal bit for bit") == 4
    assert "sequences: 3 of 3" in errors
    assert run(COMMANDS, [*command, "--recompute", "2", "-f", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [file["error"] for file in body["files"]] == [None, None]
    assert [(result["agreement"], result["largest"]) for result in body["recomputed"]] == [("equal", 0.0)] * 2
    assert run(COMMANDS, [*command, "--recompute", "1", "-f", "junit"]) == 0
    suite = ElementTree.fromstring(capsys.readouterr().out)  # noqa: S314  # our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "0", "0")


def test_verify_names_a_corrupt_shard_and_exits_with_3(small_model, here, capsys):
    Path("ids.jsonl").write_text("[1, 2, 3]\n[4, 5]\n")
    assert run(COMMANDS, ["baseline", "build", str(small_model), "ids.jsonl"]) == 0
    (shard,) = Path("baselines").glob("*/*.parquet")
    data = bytearray(shard.read_bytes())
    data[100] ^= 1
    shard.write_bytes(bytes(data))
    capsys.readouterr()
    for form in ("table", "markdown", "json", "junit"):
        command = ["baseline", "verify", only(Path("baselines")), "--recompute", "1", "-f", form]
        assert run(COMMANDS, command) == 3
        output = capsys.readouterr().out.replace("\n", "").replace(" ", "")
        assert f"{shard}:theshardiscorrupt" in output
        assert "buildthebaselineagain" in output


def test_list_shows_a_damaged_baseline_beside_the_others_and_exits_with_3(built, here, capsys):
    (here / "baselines").symlink_to(built)
    broken = built / ("f" * 64)
    broken.mkdir()
    try:
        assert run(COMMANDS, ["baseline", "list"]) == 3
        output = capsys.readouterr().out
    finally:
        broken.rmdir()
    assert only(built)[:12] in output
    assert "the manifest cannot be read" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "MODEL", "nowhere.txt"], "nowhere.txt: the corpus cannot be read"),
        (["build", "MODEL", "bad.jsonl"], "bad.jsonl:2: the line is not JSON"),
        (["build", "MODEL", "long.jsonl"], "has 300 tokens, the model takes 256"),
        (["build", "MODEL", "long.jsonl", "--form", "chats"], "the line is no chat"),
        (["build", "MODEL", "a.txt", "--length", "300"], "longer than the model's context of 256"),
        (["build", "MODEL", "a.txt", "--k", "259"], "k is 259, it can be 1 to 258"),
        (["build", "MODEL", "a.txt", "--k", "many"], "k cannot be 'many'"),
        (["build", "MODEL", "a.txt", "--k", "0"], "k cannot be '0'"),
        (["build", "no-such-model", "a.txt"], "there is no model"),
        (["build", "MODEL", "a.txt", "--device", "abacus"], "device cannot be used"),
        (["build", "MODEL"], "Missing argument"),
        (["show", "abc"], "there is no baseline 'abc'"),
        (["verify", "abc"], "there is no baseline 'abc'"),
        (["list", "--format", "junit"], "junit"),
    ],
)
def test_bad_input_is_named_and_exits_with_2(small_model, here, capsys, arguments, message):
    Path("a.txt").write_text("abc")
    Path("bad.jsonl").write_text("[1, 2]\n[1,\n")
    Path("long.jsonl").write_text(f"{[1] * 300}\n")
    asked = [str(small_model) if argument == "MODEL" else argument for argument in arguments]
    assert run(COMMANDS, ["baseline", *asked]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert not Path("baselines").exists()


def test_listing_imports_no_torch(here):
    probe = (
        "import sys; from ringtrue.cli import COMMANDS, run; "
        "code = run(COMMANDS, ['baseline', 'list']); sys.exit(code or 'torch' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-W", "error", "-c", probe], check=False)
    assert finished.returncode == 0
