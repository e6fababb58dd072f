"""Verdicts on paper: one table for people, JSON for programs, Markdown for tickets, JUnit for CI."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringtrue.records import Cause, Interval, State, Verdict

SCHEMA = 1
"""Version of the JSON output: raised when a field changes its meaning or goes."""

_COLOURS = {State.OK: "green", State.CHANGED: "yellow", State.WORSE: "bold red", State.UNKNOWN: "magenta"}
_JUNIT_TAGS = {State.OK: None, State.CHANGED: "failure", State.WORSE: "failure", State.UNKNOWN: "error"}


class Format(StrEnum):
    """The forms a report can take."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"


class PlainFormat(StrEnum):
    """The forms of a report that holds measurements and no verdict."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def report_console() -> Console:
    """Return stdout. A pipe has no width, and the usual eighty columns would break the table in every log."""
    console = Console()
    return console if console.is_terminal else Console(width=140)


def counted(count: int, noun: str) -> str:
    """Return a number of things in words, for example ``1 shard`` or ``2,048 shards``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def render_verdicts(verdicts: Sequence[Verdict], form: Format, console: Console) -> None:
    """Write a report to the console and nothing else, so that it can be piped."""
    match form:
        case Format.TABLE:
            _print_table(verdicts, console)
        case Format.JSON:
            _write(console, to_json(verdicts))
        case Format.MARKDOWN:
            _write(console, to_markdown(verdicts))
        case Format.JUNIT:
            _write(console, to_junit(verdicts))


def to_json(verdicts: Sequence[Verdict]) -> str:
    """Return ``{"schema": 1, "verdicts": [...]}`` with every field of `Verdict`, times in ISO 8601."""
    body = {"schema": SCHEMA, "verdicts": [asdict(verdict) for verdict in verdicts]}
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode()


def to_markdown(verdicts: Sequence[Verdict]) -> str:
    """Return a GitHub-flavoured table."""
    titles = (*_titles(verdicts), "reason")
    body = [(*_cells(verdict), verdict.reason) for verdict in verdicts]
    return markdown_table(titles, body)


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """Return a GitHub-flavoured table; with ``numbers`` all columns but the first are set right."""
    rule = ["---", *("---:" if numbers else "---" for _ in heads[1:])]
    return "\n".join(f"| {' | '.join(map(_in_markdown, row))} |" for row in (heads, rule, *rows))


def to_junit(verdicts: Sequence[Verdict]) -> str:
    """Return JUnit XML: a suite an endpoint, a case a check.

    CHANGED and WORSE are failures, UNKNOWN is an error.
    """
    report = Element("testsuites", _counts(verdicts), name="ringtrue")
    for endpoint in dict.fromkeys(verdict.endpoint for verdict in verdicts):
        mine = [verdict for verdict in verdicts if verdict.endpoint == endpoint]
        suite = SubElement(report, "testsuite", _counts(mine), name=in_xml(endpoint))
        for verdict in mine:
            names = {"name": verdict.check.value, "classname": in_xml(f"{endpoint}.{verdict.model}")}
            case = SubElement(suite, "testcase", names)
            if (tag := _JUNIT_TAGS[verdict.verdict]) is not None:
                what = {"type": verdict.verdict.value, "message": in_xml(verdict.reason)}
                SubElement(case, tag, what).text = in_xml(to_markdown([verdict]))
    indent(report)
    return tostring(report, encoding="unicode")


def _counts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    tags = [_JUNIT_TAGS[verdict.verdict] for verdict in verdicts]
    counts = {"tests": len(tags), "failures": tags.count("failure"), "errors": tags.count("error")}
    return {name: str(count) for name, count in counts.items()}


def _print_table(verdicts: Sequence[Verdict], console: Console) -> None:
    """Print the numbers as a table, then the sentences, which need the whole width."""
    table = Table(box=None, pad_edge=False)
    for title in _titles(verdicts):
        table.add_column(title, no_wrap=title != "endpoint", overflow="fold")
    for verdict in verdicts:
        endpoint, check, word, *others = _cells(verdict)
        table.add_row(Text(endpoint), check, Text(word, _COLOURS[verdict.verdict]), *others)
    console.print(table if verdicts else "No verdicts.")
    notable = [verdict for verdict in verdicts if verdict.verdict is not State.OK]
    if notable:
        console.print()
    for verdict in notable:
        head = Text(f"{verdict.endpoint} {verdict.check.value}: ", _COLOURS[verdict.verdict])
        console.print(head.append(verdict.reason, "default"))


def _titles(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    levels = sorted({f"{verdict.interval.level:.3g}" for verdict in verdicts if verdict.interval})
    interval = f"interval ({', '.join(levels)})" if levels else "interval"
    return ("endpoint", "check", "verdict", "cause", "value", interval, "n", "since (UTC)")


def _cells(verdict: Verdict) -> tuple[str, ...]:
    """Return the columns of one verdict but the reason; what was not measured is empty."""
    return (
        verdict.endpoint,
        verdict.check.value,
        verdict.verdict.value,
        _cause(verdict.cause, verdict.onset),
        "" if verdict.value is None else f"{_number(verdict.value)} {verdict.unit or ''}".strip(),
        _interval(verdict.interval),
        str(verdict.n) if verdict.n else "",
        f"{verdict.since:%Y-%m-%d %H:%M}" if verdict.since else "",
    )


def _cause(cause: Cause | None, onset: int | None) -> str:
    if cause is None:
        return ""
    return cause.value if onset is None else f"{cause.value} ≥ {onset:,}"


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return ""
    low, high = (None if bound is None else _number(bound) for bound in (interval.low, interval.high))
    return f"{low or '-inf'}..{high or 'inf'}"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _in_markdown(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def in_xml(text: str) -> str:
    """Return the text without what XML 1.0 cannot hold, not even escaped."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)


def _write(console: Console, text: str) -> None:
    console.file.write(f"{text}\n")
