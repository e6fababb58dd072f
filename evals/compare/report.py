"""A comparison on paper: tables for people, JSON for programs, Markdown for tickets, JUnit for CI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import orjson
from rich.console import Console
from rich.table import Table

from evals.compare.measuring import Comparison
from evals.compare.sections import conclusion, preamble, sections
from evals.compare.verdict import BudgetVerdict, Outcome
from logprob_drift.full_vocabulary.context_loss import ContextBucket
from logprob_drift.full_vocabulary.figure import Figure
from ringtrue.report import SCHEMA, Format, markdown_table

_JUNIT_TAGS = {Outcome.BEYOND: "failure", Outcome.UNMEASURED: "error"}


def render_comparison(
    found: Comparison, verdict: BudgetVerdict | None, form: Format, console: Console
) -> None:
    """Write the report to the console and nothing else, so that it can be piped."""
    match form:
        case Format.TABLE:
            _print_tables(found, verdict, console)
        case Format.JSON:
            console.file.write(f"{to_json(found, verdict)}\n")
        case Format.MARKDOWN:
            console.file.write(f"{to_markdown(found, verdict)}\n")
        case Format.JUNIT:
            console.file.write(f"{to_junit(found, verdict)}\n")


def to_json(found: Comparison, verdict: BudgetVerdict | None) -> str:
    """Return one object with schema 1; a figure is ``{"value", "unit", "low", "high", "level", "n"}``.

    ``n`` counts sequences. What does not exist or has no limit is null.
    """
    statistics = found.statistics
    body = {
        "schema": SCHEMA,
        "reference": {"name": found.reference, "fingerprint": found.reference_fingerprint},
        "candidate": {"name": found.candidate, "fingerprint": found.candidate_fingerprint},
        "corpus": found.corpus,
        "sequences": statistics.sequences,
        "positions": statistics.positions,
        "skip": found.skip,
        "seed": found.seed,
        "level": statistics.level,
        "perplexity": _figures(statistics.perplexity),
        "kl": _figures(statistics.kl),
        "delta_p": _figures(statistics.delta_p),
        "same_top": _figure(statistics.same_top),
        "floor": None
        if found.floor is None
        else {"dtype": found.floor, "draws": found.floor_draws, **_figures(statistics.floor)},
        "context": {
            "buckets": [_bucket(bucket) for bucket in found.context.buckets],
            "slope": _figure(found.context.slope),
            "floor_slope": _figure(found.context.floor_slope),
        },
        "budget": None
        if verdict is None
        else {"nats": verdict.budget, "outcome": verdict.outcome, "reason": verdict.reason},
    }
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def to_markdown(found: Comparison, verdict: BudgetVerdict | None) -> str:
    """Return the same tables as on a terminal, GitHub-flavoured."""
    lines = [f"## {found.candidate} against {found.reference}", ""]
    lines += [f"{line}  " for line in preamble(found)]
    for section in sections(found):
        lines += ["", markdown_table(section.heads, section.rows, numbers=True)]
    lines += ["", *(f"{line}  " for line in conclusion(found, verdict))]
    return "\n".join(lines).rstrip()


def to_junit(found: Comparison, verdict: BudgetVerdict | None) -> str:
    """Return one case: a failure beyond the budget, an error if it could not be judged."""
    tag = None if verdict is None else _JUNIT_TAGS.get(verdict.outcome)
    counts = {
        "tests": "1",
        "failures": str(int(tag == "failure")),
        "errors": str(int(tag == "error")),
    }
    suite = Element("testsuite", counts, name="ringtrue compare")
    case = SubElement(suite, "testcase", name="mean KL", classname=f"{found.reference}.{found.candidate}")
    if tag is not None and verdict is not None:
        SubElement(case, tag, type=verdict.outcome, message=verdict.reason)
    indent(suite)
    return tostring(suite, encoding="unicode")


def _print_tables(found: Comparison, verdict: BudgetVerdict | None, console: Console) -> None:
    console.print(f"{found.candidate} against {found.reference}", style="bold", markup=False, highlight=False)
    for line in preamble(found):
        console.print(line, markup=False, highlight=False)
    for section in sections(found):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for index, head in enumerate(section.heads):
            table.add_column(head, justify="left" if index == 0 else "right", no_wrap=True)
        for row in section.rows:
            table.add_row(*row)
        console.print()
        console.print(table)
    console.print()
    for line in conclusion(found, verdict):
        console.print(line, markup=False, highlight=False)


def _figures(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {name: _figure(figure) for name, figure in figures.items()}


def _figure(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    interval = figure.interval
    return {
        "value": figure.value,
        "unit": figure.unit,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "level": interval.level if interval else None,
        "n": figure.n,
    }


def _bucket(bucket: ContextBucket) -> dict[str, Any]:
    return {
        "first": bucket.first,
        "last": bucket.last,
        "positions": bucket.positions,
        "kl": _figure(bucket.kl),
        "floor": _figure(bucket.floor),
        "ratio": _figure(bucket.ratio),
    }
