"""Compared token IDs on paper: tables and diffs for people, JSON for programs, JUnit for CI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evals.tokens.compared import Compared
from evals.tokens.outcome import Match, Outcome
from ringtrue.exit_codes import ExitCode, exit_code
from ringtrue.records import DRIFT
from ringtrue.report import SCHEMA, Format, counted, in_xml, markdown_table
from tokenizer_checks.blame import Layer
from tokenizer_checks.blame_findings import layer_of
from tokenizer_checks.difference import Difference
from tokenizer_checks.side_by_side import as_text, printable

DIFFS = 3  # differences that are shown side by side on the terminal, of as many layers

_HEADS = ("chat", "IDs", "by", "tokens", "first", "layer", "known faults")
_COLOURS = {
    Match.EQUAL: "green",
    Match.COUNT_FITS: "green",
    Match.DIFFERS: "yellow",
    Match.COUNT_DIFFERS: "yellow",
}
_FAILED = frozenset({Match.DIFFERS, Match.COUNT_DIFFERS})
_ERRORS = frozenset({Match.UNSHOWN})


def render_diff(found: Compared, at: datetime, form: Format, console: Console) -> None:
    """Write the report to the console and nothing else, so that it can be piped."""
    match form:
        case Format.TABLE:
            _print(found, at, console)
        case Format.JSON:
            console.file.write(f"{to_json(found, at)}\n")
        case Format.MARKDOWN:
            console.file.write(f"{to_markdown(found, at)}\n")
        case Format.JUNIT:
            console.file.write(f"{to_junit(found)}\n")


def diff_exit_code(found: Compared, at: datetime) -> ExitCode:
    """Return DRIFT for other IDs than the model's own, UNMEASURED when none were shown, else FINE."""
    return exit_code(found.verdicts(at))


def to_json(found: Compared, at: datetime) -> str:
    """Return one object with schema 1: ``verdicts``, ``findings``, and the ``chats`` and ``relations``.

    It holds the text around each first difference, and its IDs; no other text of a prompt.
    """
    body = {
        "schema": SCHEMA,
        "endpoint": found.endpoint,
        "model": found.model,
        "own": found.yardstick.own,
        "tokenizer": found.yardstick.tokenizer,
        "verdicts": [asdict(verdict) for verdict in found.verdicts(at)],
        "findings": [asdict(finding) for finding in found.findings],
        "explained": found.explained,
        "chats": [_chat(one, found.explained) for one in found.outcomes],
        "relations": [
            {
                "chats": [one.first, one.second],
                "of_server": asdict(one.of_server),
                "own": None if one.own is None else asdict(one.own),
                "party": one.party,
            }
            for one in found.related
        ],
    }
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode()


def to_markdown(found: Compared, at: datetime) -> str:
    """Return the verdict, a table of the chats, and what was found."""
    said = [*(f"- {finding.message}" for finding in found.findings), *_notes(found, "- ")]
    rows = [_cells(one, found.explained) for one in found.outcomes]
    states = ", ".join(f"{verdict.check}: **{verdict.verdict}**" for verdict in found.verdicts(at))
    parts = [f"{_head(found)} {states}", markdown_table(_HEADS, rows), "\n".join(said)]
    return "\n\n".join(parts)


def to_junit(found: Compared) -> str:
    """Return a case a chat and a relation: failures for other IDs, errors for what was not shown.

    A chat that the model's own template refuses is skipped.
    """
    suite = Element("testsuite", name=in_xml(f"ringtrue tokens diff {found.endpoint}"))
    for one in found.outcomes:
        case = SubElement(suite, "testcase", name=in_xml(one.name), classname=in_xml(found.model))
        said = in_xml(one.blame.sentence if one.blame else one.note or _tokens(one))
        tag = "failure" if one.match in _FAILED else "error" if one.match in _ERRORS else None
        if tag is not None:
            SubElement(case, tag, type=one.match.value, message=said)
        elif one.match is Match.REFUSED:
            SubElement(case, "skipped", message=said)
    for related in found.related:
        case = SubElement(suite, "testcase", name=f"relation {related.of_server.name}", classname="relations")
        odd = related.odd
        if odd.kept is False and related.party == "provider":
            SubElement(case, "failure", type=odd.name, message=in_xml(odd.sentence))
    for tag, name in (("testcase", "tests"), ("failure", "failures"), ("error", "errors")):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    indent(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True)


def _chat(one: Outcome, explained: Sequence[str]) -> dict[str, Any]:
    return {
        "name": one.name,
        "match": one.match,
        "way": one.way,
        "used": one.used,
        "expected_tokens": None if one.expected is None else len(one.expected),
        "used_tokens": one.count if one.ids is None else len(one.ids),
        "difference": None if one.difference is None else _difference(one.difference),
        "layer": None if one.blame is None else layer_of(one.blame, explained),
        "alternatives": one.blame.alternatives if one.blame else [],
        "faults": one.blame.mutations if one.blame else [],
        "sentence": one.blame.sentence if one.blame else one.note,
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "first": found.first,
        "missing": found.missing,
        "added": found.added,
        "expected": asdict(found.expected_window),
        "used": asdict(found.used_window),
    }


def _print(found: Compared, at: datetime, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for head in _HEADS:
        table.add_column(head, overflow="fold", justify="right" if head == "first" else "left")
    console.print(Text(_head(found)), soft_wrap=True)
    console.print()
    for one in found.outcomes:
        name, word, *others = _cells(one, found.explained)
        colour = _COLOURS.get(one.match, "magenta")
        table.add_row(Text(name), Text(word, colour), *map(Text, others))
    console.print(table)
    console.print()
    for one in _examples(found):
        if one.difference is not None:
            console.print(Text(one.name, "bold"))
            console.print(Text(as_text(one.difference, found.yardstick.vocabulary)), soft_wrap=True)
            console.print()
    for line in _notes(found, ""):
        console.print(Text(line, "magenta"), soft_wrap=True)
    drift = {state.value for state in DRIFT}
    for verdict in found.verdicts(at):
        colour = "yellow" if verdict.verdict.value in drift else "default"
        said = [finding.message for finding in found.findings if finding.check is verdict.check]
        for message in said:
            console.print(Text(printable(message)), soft_wrap=True)
        console.print(Text(f"{verdict.check}: {verdict.verdict}", colour))


def _examples(found: Compared) -> Iterator[Outcome]:
    """Yield the first difference of each layer, of the first few."""
    layers: set[Layer] = set()
    for one in found.outcomes:
        layer = None if one.blame is None else layer_of(one.blame, found.explained)
        if layer is not None and layer not in layers and len(layers) < DIFFS:
            layers.add(layer)
            yield one


def _head(found: Compared) -> str:
    held = found.yardstick
    return f"Token IDs of {found.endpoint} ({found.model}) against {held.own} (tokenizer: {held.tokenizer})."


def _notes(found: Compared, mark: str) -> list[str]:
    """Return what is not to be overlooked: what was not shown, refused, or only rendered."""
    lines = []
    rendered = [one for one in found.outcomes if one.used is False]
    if rendered:
        lines.append(
            f"in {counted(len(rendered), 'chat')} the IDs are those that the server says it would use, "
            "not those of an answer"
        )
    for match in (Match.UNSHOWN, Match.REFUSED):
        reasons: dict[str, list[str]] = {}
        for one in found.outcomes:
            if one.match is match:
                reasons.setdefault(one.note, []).append(one.name)
        lines += [f"{match} ({', '.join(names)}): {why}" for why, names in reasons.items()]
    return [f"{mark}{line}" for line in lines]


def _cells(one: Outcome, explained: Sequence[str]) -> tuple[str, ...]:
    blame, found = one.blame, one.difference
    return (
        one.name,
        one.match.value,
        "" if one.way is None else one.way if one.used else f"{one.way} (rendered)",
        _tokens(one),
        "" if found is None else f"{found.first:,}",
        "" if blame is None else layer_of(blame, explained).value,
        "" if blame is None else ", ".join(blame.mutations),
    )


def _tokens(one: Outcome) -> str:
    used = one.count if one.ids is None else len(one.ids)
    if used is None or one.expected is None:
        return "" if used is None else f"{used:,}"
    return f"{used:,}" if used == len(one.expected) else f"{used:,} of {len(one.expected):,}"
