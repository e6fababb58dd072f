"""A verification on paper."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rich.console import Console

from evals.baseline.report import SHORT, write_json, write_rows
from evals.baseline.verifying import Verification
from reference_engine.baselines.integrity import CheckedFile
from reference_engine.baselines.recomputing import Agreement, Recomputed
from ringtrue.report import Format, PlainFormat, counted

_WORDS = {
    Agreement.EQUAL: "equal bit for bit",
    Agreement.WITHIN: "within the tolerance of another environment",
    Agreement.DIFFERENT: "different",
    Agreement.UNDECIDED: "undecided: half precision in another environment",
}
_JUNIT_TAGS = {Agreement.DIFFERENT: "failure", Agreement.UNDECIDED: "error"}


def render_verification(found: Verification, form: Format, console: Console) -> None:
    """Write what was checked, and nothing else, so that it can be piped."""
    if form is Format.JSON:
        write_json(_body(found), console)
    elif form is Format.JUNIT:
        console.file.write(f"{_junit(found)}\n")
    else:
        _print(found, PlainFormat(form.value), console)


def _print(found: Verification, form: PlainFormat, console: Console) -> None:
    damaged = [file for file in found.files if file.damage is not None]
    write_rows(("what is wrong",), [(str(file.damage),) for file in damaged], form, console)
    heads = ("sequence", "positions", "agreement", "largest difference", "from states")
    write_rows(heads, [_cells(result) for result in found.recomputed], form, console)
    console.print(_conclusion(found, len(damaged)), markup=False, highlight=False)


def _conclusion(found: Verification, damaged: int) -> str:
    name = f"baseline {found.baseline.id[:SHORT]}"
    if damaged:
        return f"{name}: damaged"
    checked = f"{name}: manifest and {counted(len(found.files) - 1, 'shard')} as they were written"
    if not found.recomputed:
        return checked
    different = sum(result.agreement is Agreement.DIFFERENT for result in found.recomputed)
    count = len(found.recomputed)
    if different:
        return f"{checked}, but of {counted(count, 'recomputed sequence')} {different:,} differ"
    words = {result.agreement: _WORDS[result.agreement] for result in found.recomputed}
    agreed = " or ".join(words[agreement] for agreement in sorted(words))
    return f"{checked}; {counted(count, 'recomputed sequence')}: {agreed}"


def _cells(result: Recomputed) -> tuple[str, ...]:
    return (
        str(result.sequence),
        f"{result.positions:,}",
        _WORDS[result.agreement],
        f"{result.largest:.3g}",
        "" if result.from_states is None else f"{result.from_states:.3g}",
    )


def _body(found: Verification) -> dict[str, Any]:
    return {
        "id": found.baseline.id,
        "files": [
            {"file": file.path.name, "error": None if file.damage is None else str(file.damage)}
            for file in found.files
        ],
        "recomputed": [asdict(result) for result in found.recomputed],
    }


def _junit(found: Verification) -> str:
    cases = [*map(_file_case, found.files), *map(_sequence_case, found.recomputed)]
    tags = [case[0].tag for case in cases if len(case)]
    counts = {
        "tests": str(len(cases)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
    }
    suite = Element("testsuite", counts, name=f"ringtrue baseline {found.baseline.id[:SHORT]}")
    suite.extend(cases)
    indent(suite)
    return tostring(suite, encoding="unicode")


def _file_case(file: CheckedFile) -> Element:
    case = Element("testcase", name=file.path.name, classname="files")
    if file.damage is not None:
        SubElement(case, "error", message=str(file.damage))
    return case


def _sequence_case(result: Recomputed) -> Element:
    case = Element("testcase", name=f"sequence {result.sequence}", classname="recomputed")
    if (tag := _JUNIT_TAGS.get(result.agreement)) is not None:
        message = f"{_WORDS[result.agreement]}: up to {result.largest:.3g} nats"
        SubElement(case, tag, message=message)
    return case
