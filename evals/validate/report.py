"""A validation on paper: lines of JSON as they come, tables, Markdown and JUnit at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evals.validate.running import JudgedRecord
from evals.validate.summary import Seen, Summary
from ringtrue.exit_codes import ExitCode
from ringtrue.records import Severity
from ringtrue.report import SCHEMA, Format, counted, in_xml, markdown_table
from toolcall_validator.fault import CODES
from toolcall_validator.metrics import RATES, STEPS, Metrics, success_of_steps

_FAULTS = ("code", "severity", "party", "exchanges", "first seen in")
_METRICS = ("metric", "value", "95 % interval", "of", "prompts")
_COLOURS = {Severity.FAIL: "bold red", Severity.WARN: "yellow", Severity.INFO: "cyan"}
_PAIRS = 5  # that are shown to people; JSON has all
_FAMILIES = tuple(dict.fromkeys(code.split(".")[0] for code in CODES))


def line_of(record: JudgedRecord) -> bytes:
    """Return the JSON line of one exchange: its ``id`` and its findings, most upstream first."""
    body = {"id": record.id, "findings": [fault.as_dict() for fault in record.judgement.faults]}
    return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)


def last_line(found: Summary) -> bytes:
    """Return the JSON line that ends a report: metrics by endpoint, pairs that differ, endpoints compared."""
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "exchanges": found.exchanges,
        "metrics": {endpoint: metrics.as_dict() for endpoint, metrics in found.metrics.items()},
        "pairs": [
            {
                "endpoint": pair.endpoint,
                "plain": pair.plain,
                "streamed": pair.streamed,
                **pair.fault.as_dict(),
                "detail": pair.fault.detail,
            }
            for pair in found.broken_pairs
        ],
        "differences": [
            {
                "endpoint": endpoint,
                "against": against,
                "metric": "request_validity",
                "value": apart.value,
                "interval": [apart.interval.low, apart.interval.high],
                "prompts": apart.prompts,
            }
            for (endpoint, against), apart in found.differences.items()
        ],
    }
    return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)


def render_summary(found: Summary, form: Format, console: Console) -> None:
    """Write what the whole recording came to, and nothing else, so that it can be piped."""
    match form:
        case Format.TABLE:
            _print_tables(found, console)
        case Format.JSON:
            console.file.write(last_line(found).decode())
        case Format.MARKDOWN:
            console.file.write(f"{to_markdown(found)}\n")
        case Format.JUNIT:
            console.file.write(f"{to_junit(found)}\n")


def validate_exit_code(found: Summary) -> ExitCode:
    """Return DRIFT for any fail fault, UNMEASURED when no answer could be scored, else FINE."""
    if found.failed:
        return ExitCode.DRIFT
    return ExitCode.FINE if found.scored else ExitCode.UNMEASURED


def to_markdown(found: Summary) -> str:
    """Return the faults and the metrics of each endpoint as GitHub-flavoured tables."""
    parts = []
    for endpoint, metrics in found.metrics.items():
        parts.append(f"### {_name(endpoint)}\n\n{_counts(metrics)}")
        faults = [_fault_cells(code, seen) for code, seen in found.of(endpoint)]
        parts += [markdown_table(_FAULTS, faults)] if faults else []
        parts.append(markdown_table(_METRICS, _metric_cells(metrics)))
    lines = [f"- {line}" for line in (*_pairs(found), *_differences(found))]
    return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])])


def to_junit(found: Summary) -> str:
    """Return JUnit XML: a suite an endpoint, a case a family of codes.

    A family with a fail fault is a failure, pairs that differ are one of
    ``stream``; an endpoint of which nothing could be scored is an error in each.
    """
    report = Element("testsuites", name="ringtrue validate")
    for endpoint, metrics in found.metrics.items():
        name = in_xml(_name(endpoint))
        suite = SubElement(report, "testsuite", name=name, tests=str(len(_FAMILIES)))
        failures = 0
        for family in _FAMILIES:
            case = SubElement(suite, "testcase", name=family, classname=name)
            loud = [
                (code, seen)
                for code, seen in found.of(endpoint)
                if code.split(".")[0] == family and seen.severity is Severity.FAIL
            ]
            pairs = [pair for pair in found.broken_pairs if pair.endpoint == endpoint]
            words = [f"{code} in {counted(seen.exchanges, 'exchange')}" for code, seen in loud]
            if family == "stream" and pairs:
                words.append(f"stream.parity in {counted(len(pairs), 'pair')}")
            if words:
                failures += 1
                failure = SubElement(case, "failure", type="fail", message="; ".join(words))
                failure.text = in_xml(markdown_table(_FAULTS, [_fault_cells(*one) for one in loud]))
            elif not metrics.scored:
                SubElement(case, "error", type="unmeasured", message="no answer could be scored")
        suite.set("failures", str(failures))
        suite.set("errors", str(0 if metrics.scored else len(_FAMILIES) - failures))
    indent(report)
    return tostring(report, encoding="unicode")


def _print_tables(found: Summary, console: Console) -> None:
    for endpoint, metrics in found.metrics.items():
        console.print(Text(f"{_name(endpoint)}: {_counts(metrics)}", "bold"))
        codes = found.of(endpoint)
        if codes:
            styles = [_COLOURS[seen.severity] for _, seen in codes]
            _print(console, _FAULTS, [_fault_cells(code, seen) for code, seen in codes], styles)
        rows = _metric_cells(metrics)
        if rows:
            _print(console, _METRICS, rows, [""] * len(rows))
    for line in (*_pairs(found), *_differences(found)):
        console.print(Text(line))
    if not found.metrics:
        console.print("No exchanges.")


def _print(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]
) -> None:
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for (first, *others), style in zip(rows, styles, strict=True):
        table.add_row(Text(first, style), *map(Text, others))
    console.print(table)
    console.print()


def _counts(metrics: Metrics) -> str:
    return f"{counted(metrics.exchanges, 'exchange')}, {metrics.scored:,} scored"


def _fault_cells(code: str, seen: Seen) -> tuple[str, ...]:
    places = "; ".join(seen.places)
    return code, seen.severity.value, ", ".join(sorted(seen.parties)), f"{seen.exchanges:,}", places


def _metric_cells(metrics: Metrics) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, rate in metrics.rates.items():
        if name in RATES or rate.events:  # a schema fault that never came needs no line
            counts = f"{rate.events:,}/{rate.trials:,}"
            rows.append((name, f"{rate.value:.3f}", _bounds(rate.interval), counts, f"{rate.prompts:,}"))
    parity = metrics.parity
    if parity is not None:
        value, broken = f"{parity.value:+.3f}", f"{parity.broken:,}/{parity.pairs:,} differ"
        rows.append(("stream_parity", value, _bounds(parity.interval), broken, f"{parity.pairs:,}"))
    for name, trigger in (("trigger_f1", metrics.trigger), ("reference_rerun_f1", metrics.rerun)):
        if trigger is not None:
            f1, counts = f"{trigger.f1:.3f}", f"{2 * trigger.both:,}/{2 * trigger.both + trigger.one:,}"
            rows.append((name, f1, _bounds(trigger.interval), counts, f"{trigger.prompts:,}"))
    steps = success_of_steps(metrics.rates.get("effective_rate"))
    if steps is not None:
        success, (low, high) = steps
        rows.append((f"{STEPS} steps in a row", f"{success:.2g}", f"[{low:.2g}, {high:.2g}]", "", ""))
    return rows


def _pairs(found: Summary) -> list[str]:
    """Return the first pairs that differ, in words, and how many more there are."""
    shown = [
        f"{_name(pair.endpoint)}: {pair.plain} and {pair.streamed} answer one prompt and differ: "
        f"{pair.fault.detail}"
        for pair in found.broken_pairs[:_PAIRS]
    ]
    more = len(found.broken_pairs) - _PAIRS
    return [*shown, f"{counted(more, 'more pair')} differ"] if more > 0 else shown


def _differences(found: Summary) -> list[str]:
    return [
        f"{_name(endpoint)} has {apart.value:+.3f} {_bounds(apart.interval)} of valid answers against "
        f"{_name(against)}, over {counted(apart.prompts, 'shared prompt')}"
        for (endpoint, against), apart in found.differences.items()
    ]


def _bounds(interval: Any) -> str:
    return f"[{interval.low:.3f}, {interval.high:.3f}]"


def _name(endpoint: str) -> str:
    return endpoint or "(endpoint not named)"
