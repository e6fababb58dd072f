from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from evals.tokens.lint_report import lint_exit_code, lint_files, to_json, to_junit, to_markdown
from evals.tokens.template_files import TemplateFile, read_templates
from reference_engine.models.embedded import embedded_file
from ringtrue.errors import ModelError, UsageError
from ringtrue.exit_codes import ExitCode
from tests.material import template_folder
from tests.unit.tokenizer_checks.templates.sources import CHATML, DATED, TOOLLESS

if TYPE_CHECKING:
    from pathlib import Path


def _written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_template_is_read_from_its_file_a_configuration_and_a_folder(tmp_path):
    own = _written(tmp_path / "own.jinja", CHATML)
    configuration = _written(tmp_path / "tokenizer_config.json", orjson.dumps({"chat_template": CHATML}))

    found = read_templates([own, configuration, tmp_path])

    assert {one.source for one in found} == {CHATML}
    assert [one.name for one in found] == [str(own), str(configuration), str(configuration)]


def test_a_file_of_its_own_goes_before_the_configuration(tmp_path):
    _written(tmp_path / "tokenizer_config.json", orjson.dumps({"chat_template": DATED}))
    _written(tmp_path / "chat_template.jinja", CHATML)

    assert [one.source for one in read_templates([tmp_path])] == [CHATML]


def test_templates_by_name_are_told_apart(tmp_path):
    entries = [{"name": "default", "template": CHATML}, {"name": "tool_use", "template": DATED}]
    path = _written(tmp_path / "tokenizer_config.json", orjson.dumps({"chat_template": entries}))

    found = read_templates([path])

    assert [(one.name, one.source) for one in found] == [
        (f"{path} (default)", CHATML),
        (f"{path} (tool_use)", DATED),
    ]


def test_the_template_in_a_gguf_file_is_read():
    (found,) = read_templates([embedded_file()])

    assert "SmolLM" in found.source


def test_the_real_templates_are_read_and_none_is_broken_or_without_end():
    found = lint_files(read_templates(sorted(template_folder().glob("*.jinja"))))

    assert len(found) == 70
    assert not any(flaw.rule.startswith("template.") for one in found for flaw in one.flaws)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.jinja", b"\xff\xfe\x00", "not a text file"),
        ("a.txt", b"no template here", "holds no chat template"),
        ("a.json", b"{", "not JSON"),
        ("a.json", b'{"chat_template": null}', "holds no chat template"),
        ("a.json", b'{"chat_template": [{"name": "x"}]}', "no name and template"),
    ],
)
def test_what_holds_no_template_is_named(tmp_path, name, content, why):
    path = _written(tmp_path / name, content)

    with pytest.raises(UsageError, match=why) as caught:
        read_templates([path])

    assert caught.value.where == str(path)


def test_a_damaged_gguf_file_is_named(tmp_path):
    path = _written(tmp_path / "a.gguf", embedded_file().read_bytes()[:30_000])

    with pytest.raises(ModelError) as caught:
        read_templates([path])

    assert caught.value.where == str(path)


@pytest.mark.parametrize("name", ["none.jinja", "none.gguf", "none.json"])
def test_a_file_that_is_not_there_is_named(tmp_path, name):
    with pytest.raises(UsageError, match="cannot be read"):
        read_templates([tmp_path / name])


def _linted(*sources: str):
    return lint_files(TemplateFile(f"t{at}.jinja", source) for at, source in enumerate(sources))


def test_only_warnings_end_with_1_unless_strict():
    clean, remark, warning, broken = _linted(CHATML), _linted(REMARK), _linted(TOOLLESS), _linted("{% if %}")

    assert [lint_exit_code(one, strict=False) for one in (clean, remark, warning, broken)] == [
        ExitCode.FINE,
        ExitCode.FINE,
        ExitCode.DRIFT,
        ExitCode.DRIFT,
    ]
    assert lint_exit_code(remark, strict=True) is ExitCode.DRIFT
    assert lint_exit_code(clean, strict=True) is ExitCode.FINE


REMARK = CHATML + "{{ strftime_now('%Y') }}"


def test_a_broken_template_is_a_flaw_with_its_line():
    (template,) = orjson.loads(to_json(_linted("\n{% if %}")))["templates"]

    (flaw,) = template["flaws"]
    assert (flaw["rule"], flaw["severity"], flaw["line"]) == ("template.broken", "fail", 2)
    assert template["name"] == "t0.jinja"


def test_junit_fails_the_templates_with_warnings_alone():
    report = to_junit(_linted(CHATML, REMARK, TOOLLESS))

    assert 'tests="3"' in report
    assert 'failures="1"' in report
    assert report.count("<failure") == 1


def test_markdown_has_a_row_a_flaw():
    assert "| t0.jinja | 1 | warn | tools.ignored |" in to_markdown(_linted(TOOLLESS))
    assert "|" not in to_markdown(_linted(CHATML))
