"""An inspection on paper: what an endpoint can do, and whether its logprobs can be trusted."""

from __future__ import annotations

from dataclasses import asdict
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import orjson
from rich.console import Console
from rich.table import Table

from probes.inspection import Inspection

SCHEMA = 1

_WORDS = {True: "yes", False: "no", None: "unknown"}
_PASSED = {True: "passed", False: "FAILED", None: "unknown"}


def to_json(inspection: Inspection) -> str:
    """``{"schema": 1, "endpoint", "capabilities", "self_test"}``; what is unknown is null."""
    return orjson.dumps({"schema": SCHEMA} | asdict(inspection), option=orjson.OPT_INDENT_2).decode()


def to_markdown(inspection: Inspection) -> str:
    """Two GitHub-flavoured tables and the summary."""
    lines = [f"## {inspection.endpoint}", "", inspection.summary]
    for title, rows in _sections(inspection):
        lines += ["", f"| {title} | | |", "|---|---|---|"]
        lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def to_junit(inspection: Inspection) -> str:
    """A case a check: ``<failure>`` where it failed, ``<error>`` where it could not be made."""
    test = inspection.self_test
    suite = Element("testsuite", name=f"inspect {inspection.endpoint}")
    cases = [(check.name, check.passed, check.detail) for check in test.checks]
    if test.trusted is None:
        cases.append(("logprobs", None, inspection.summary))
    for name, passed, detail in cases:
        case = SubElement(suite, "testcase", name=name, classname=inspection.capabilities.model)
        if passed is not True:
            SubElement(case, "error" if passed is None else "failure", message=detail)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(passed is False for _, passed, _ in cases)))
    suite.set("errors", str(sum(passed is None for _, passed, _ in cases)))
    indent(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True)


def print_tables(inspection: Inspection, console: Console) -> None:
    """Tables for a person."""
    for title, rows in _sections(inspection):
        table = Table("", "", "", title=title, title_justify="left", show_header=False)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    console.print(inspection.summary, markup=False)


def _sections(inspection: Inspection) -> list[tuple[str, list[tuple[str, str, str]]]]:
    found, test = inspection.capabilities, inspection.self_test
    facts = [
        ("model", found.model, ", ".join(found.models)),
        ("dialect", found.dialect, ""),
        ("context length", _number(found.context_length), "tokens, as promised"),
        ("largest k", _number(found.largest_k), "alternatives per position"),
        *((feature.name, _WORDS[feature.available], feature.detail) for feature in found.features),
    ]
    checks = [(check.name, _PASSED[check.passed], check.detail) for check in test.checks]
    sections = [("Capabilities", facts), (f"Logprob self-test ({test.requests} requests)", checks)]
    return [(title, rows) for title, rows in sections if rows]


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
