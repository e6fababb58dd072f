"""Template files read for faults, on paper."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import orjson
from rich.console import Console
from rich.text import Text

from evals.tokens.template_files import TemplateFile
from ringtrue.exit_codes import ExitCode
from ringtrue.records import Severity
from ringtrue.report import SCHEMA, Format, counted, in_xml, markdown_table
from tokenizer_checks.side_by_side import printable
from tokenizer_checks.templates.flaw import Flaw
from tokenizer_checks.templates.lint import flaws

_COLOURS = {Severity.INFO: "default", Severity.WARN: "yellow", Severity.FAIL: "bold red"}
_HEADS = ("template", "line", "severity", "rule", "what")


@dataclass(frozen=True, slots=True)
class Linted:
    """One template with what is to be said of it, by line."""

    file: TemplateFile
    flaws: tuple[Flaw, ...]


def lint_files(files: Iterable[TemplateFile]) -> tuple[Linted, ...]:
    """Return every template with its flaws; one that can't be parsed has that flaw and no other."""
    return tuple(Linted(file, flaws(file.source, file.name)) for file in files)


def lint_exit_code(found: Iterable[Linted], *, strict: bool) -> ExitCode:
    """Return DRIFT for any warning or worse, with ``strict`` for any flaw at all; else FINE."""
    quiet = () if strict else (Severity.INFO,)
    loud = any(flaw.severity not in quiet for one in found for flaw in one.flaws)
    return ExitCode.DRIFT if loud else ExitCode.FINE


def render_lint(found: Sequence[Linted], form: Format, console: Console) -> None:
    """Write the report to the console and nothing else, so that it can be piped."""
    match form:
        case Format.TABLE:
            _print(found, console)
        case Format.JSON:
            console.file.write(f"{to_json(found)}\n")
        case Format.MARKDOWN:
            console.file.write(f"{to_markdown(found)}\n")
        case Format.JUNIT:
            console.file.write(f"{to_junit(found)}\n")


def to_json(found: Sequence[Linted]) -> str:
    """Return ``{"schema": 1, "templates": [{"name", "sha256", "flaws": [...]}]}``."""
    body = {"schema": SCHEMA, "templates": [_template(one) for one in found]}
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def to_markdown(found: Sequence[Linted]) -> str:
    """Return a summary, and a table where there are flaws."""
    rows = [
        (one.file.name, str(flaw.line), flaw.severity.value, flaw.rule.value, flaw.message)
        for one in found
        for flaw in one.flaws
    ]
    return "\n\n".join([_summary(found), *([markdown_table(_HEADS, rows)] if rows else [])])


def to_junit(found: Sequence[Linted]) -> str:
    """Return a case a template, with a ``<failure>`` for each flaw that is more than a remark."""
    suite = Element("testsuite", name="ringtrue tokens lint", tests=str(len(found)), errors="0")
    failed = 0
    for one in found:
        case = SubElement(suite, "testcase", name=in_xml(one.file.name), classname="templates")
        loud = [flaw for flaw in one.flaws if flaw.severity is not Severity.INFO]
        failed += bool(loud)
        for flaw in loud:
            message = in_xml(f"line {flaw.line}: {flaw.message}")
            SubElement(case, "failure", type=flaw.rule.value, message=message)
    suite.set("failures", str(failed))
    indent(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True)


def _template(one: Linted) -> dict[str, Any]:
    digest = hashlib.sha256(one.file.source.encode()).hexdigest()
    return {"name": one.file.name, "sha256": digest, "flaws": [asdict(flaw) for flaw in one.flaws]}


def _print(found: Sequence[Linted], console: Console) -> None:
    for one in found:
        for flaw in one.flaws:
            place = Text(f"{one.file.name}:{flaw.line}: ")
            word = Text(f"{flaw.severity.value} ", _COLOURS[flaw.severity])
            # A message may quote the template, and a template may hold anything.
            said = Text(f"{flaw.rule.value}: {printable(flaw.message)}")
            console.print(place + word + said, soft_wrap=True)
    console.print(_summary(found), soft_wrap=True)


def _summary(found: Sequence[Linted]) -> str:
    loud = sum(any(flaw.severity is not Severity.INFO for flaw in one.flaws) for one in found)
    told = sum(len(one.flaws) for one in found)
    return (
        f"{counted(len(found), 'template')} read, {loud} with warnings; {counted(told, 'statement')} in all."
    )
