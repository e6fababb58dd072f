"""The commands without a server: files, and everything that can be wrong with what they are given."""

import json

import orjson
import pytest

from reference_engine.models.embedded import embedded_file
from reference_engine.models.sources import find_tokenizer
from reference_engine.tokenizers.opening import open_tokenizer
from ringtrue.cli import COMMANDS, run
from ringtrue.exit_codes import ExitCode
from tests.unit.tokenizer_checks.templates.sources import CHATML, TOOLLESS
from tokenizer_checks.templates.chat import Chat

CHAT = ({"role": "user", "content": "Name a town."},)


@pytest.fixture(scope="module")
def codec():
    return open_tokenizer(embedded_file())


@pytest.fixture
def ringtrue(capsys):
    def command(*arguments):
        code = run(COMMANDS, ["tokens", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def _ids(path, ids):
    path.write_bytes(orjson.dumps(ids))
    return path


def _recorded(path, ids):
    answer = {
        "prompt_token_ids": list(ids),
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(ids) + 1},
    }
    request = {"model": "m", "messages": list(CHAT)}
    return _ids(path, {"id": "one", "request": request, "response": answer})


def test_equal_ids_end_with_0_and_others_with_1(tmp_path, codec, ringtrue):
    own = codec.encode_prompt(codec.render_chat(Chat(CHAT)), add_special_tokens=False)
    right, wrong = _ids(tmp_path / "right.json", own), _ids(tmp_path / "wrong.json", [own[0], *own])

    code, said, _ = ringtrue("diff", "--expected", right, "--used", right)
    assert (code, "tokens: OK" in said) == (ExitCode.FINE, True)
    code, said, _ = ringtrue("diff", "--expected", right, "--used", wrong)
    assert (code, "tokens: CHANGED" in said) == (ExitCode.DRIFT, True)
    assert "<|im_start|>" in said


def test_recorded_prompts_are_held_against_the_models_own(tmp_path, codec, ringtrue):
    own = codec.encode_prompt(codec.render_chat(Chat(CHAT)), add_special_tokens=False)

    honest = ringtrue("diff", "--used", _recorded(tmp_path / "a.jsonl", own), "--format", "json")
    doubled = ringtrue("diff", "--used", _recorded(tmp_path / "b.jsonl", (own[0], *own)), "--format", "json")

    assert (honest[0], json.loads(honest[1])["chats"][0]["match"]) == (ExitCode.FINE, "equal")
    assert doubled[0] == ExitCode.DRIFT
    assert "bos_doubled" in json.loads(doubled[1])["explained"]


@pytest.mark.parametrize("form", ["table", "json", "markdown", "junit"])
def test_every_form_prints_the_verdict_alone_to_stdout(tmp_path, ringtrue, form):
    path = _ids(tmp_path / "ids.json", [1, 2, 3])

    _, said, errors = ringtrue("diff", "--expected", path, "--used", path, "--format", form)

    assert said
    assert errors == ""


def test_ids_of_another_vocabulary_are_refused_where_they_are_expected_and_told_where_used(
    tmp_path, ringtrue
):
    foreign, own = _ids(tmp_path / "foreign.json", [700_000] * 9), _ids(tmp_path / "own.json", [1] * 9)

    code, _, errors = ringtrue("diff", "--expected", foreign, "--used", own)
    assert code == ExitCode.USAGE
    assert "700,000 is not in the vocabulary of smollm2-135m (49,152 tokens)" in errors
    code, said, _ = ringtrue("diff", "--expected", own, "--used", foreign)
    assert (code, "another pre-tokenizer or vocabulary" in said) == (ExitCode.DRIFT, True)


WRONG = {
    "no endpoint": (["diff"], "names no endpoint"),
    "expected alone": (["diff", "--expected", "IDS"], "--expected needs --used"),
    "file and server": (
        ["diff", "--used", "IDS", "--url", "http://localhost:1"],
        "a server is named as well",
    ),
    "counts and server": (["infer", "--counts", "IDS", "--url", "http://localhost:1"], "a server is named"),
    "IDs without messages": (["diff", "--used", "IDS"], "holds no messages"),
    "text for IDs": (["diff", "--expected", "IDS", "--used", "TEXT"], "index 0 but str"),
    "no tokenizer": (["diff", "--used", "IDS", "--expected", "IDS", "--tokenizer", "TEXT"], "TEXT"),
    "two tokenizers": (
        ["diff", "--used", "IDS", "--expected", "IDS", "--tokenizer", "IDS", "--reference", "x"],
        "two tokenizers",
    ),
    "no such model": (["diff", "--url", "http://localhost:1", "--reference", "none.gguf"], "no model"),
    "unknown chat": (
        ["diff", "--url", "http://localhost:1", "--model", "m", "--chat", "x"],
        "no chat is named",
    ),
    "chats twice": (
        ["diff", "--url", "http://localhost:1", "--model", "m", "--chats", "IDS", "--all"],
        "not both",
    ),
    "unknown dialect": (
        ["diff", "--url", "http://localhost:1", "--model", "m", "--dialect", "vlm"],
        "unknown dialect",
    ),
    "unset key": (
        ["diff", "--url", "http://localhost:1", "--model", "m", "--api-key", "env:RINGTRUE_NONE"],
        "RINGTRUE_NONE",
    ),
    "template that is none": (
        ["diff", "--url", "http://localhost:1", "--template", "IDS"],
        "no chat template",
    ),
    "no file": (["lint", "NONE"], "cannot be read"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_can_not_be_used_ends_with_2_and_is_named(tmp_path, ringtrue, case):
    arguments, why = WRONG[case]
    paths = {
        "IDS": _ids(tmp_path / "IDS.json", [1, 2, 3]),
        "TEXT": _ids(tmp_path / "TEXT.json", ["one"]),
        "NONE": tmp_path / "NONE",
    }

    code, said, errors = ringtrue(*(paths.get(argument, argument) for argument in arguments))

    assert (code, said) == (ExitCode.USAGE, "")
    assert why in errors


def test_a_tokenizer_of_an_unknown_class_is_named(tmp_path, ringtrue):
    folder = tmp_path / "model"
    folder.mkdir()
    _ids(folder / "tokenizer_config.json", {"tokenizer_class": "NoSuchTokenizer"})
    path = _ids(tmp_path / "ids.json", [1])

    code, _, errors = ringtrue("diff", "--used", path, "--expected", path, "--tokenizer", folder)

    assert code == ExitCode.USAGE
    assert str(folder) in errors


def test_a_server_that_is_away_is_unmeasured(ringtrue):
    code, _, errors = ringtrue("diff", "--url", "http://127.0.0.1:9")
    assert (code, "cannot connect" in errors) == (ExitCode.UNMEASURED, True)
    away = ("--url", "http://127.0.0.1:9", "--model", "m", "--dialect", "openai")
    code, said, _ = ringtrue("diff", *away, "--chat", "one_user")
    assert (code, "not shown (one_user)" in said) == (ExitCode.UNMEASURED, True)


def test_counts_from_a_file_are_judged_and_too_few_are_unmeasured(tmp_path, ringtrue):
    code, said, _ = ringtrue("infer", "--counts", _ids(tmp_path / "counts.json", {"base": 37}))

    assert code == ExitCode.UNMEASURED
    assert "too few" in said


def test_lint_ends_with_1_for_a_warning_and_names_the_line(tmp_path, ringtrue):
    clean, flawed = tmp_path / "clean.jinja", tmp_path / "flawed.jinja"
    clean.write_text(CHATML, encoding="utf-8")
    flawed.write_text("\n{% if %}" + TOOLLESS, encoding="utf-8")

    assert ringtrue("lint", clean)[0] == ExitCode.FINE
    code, said, _ = ringtrue("lint", clean, flawed)
    assert code == ExitCode.DRIFT
    assert f"{flawed}:2: fail template.broken" in said


def test_a_tokenizer_is_found_by_name_file_and_folder(tmp_path):
    assert find_tokenizer("smollm2-135m") == embedded_file()
    assert find_tokenizer(str(tmp_path)) == tmp_path
