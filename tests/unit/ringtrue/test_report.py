from __future__ import annotations

import io
import json
from dataclasses import fields
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from rich.console import Console

from ringtrue.exit_codes import ExitCode, exit_code
from ringtrue.progress import Bars, Lines, progress_on
from ringtrue.records import Cause, Check, Interval, State, Verdict
from ringtrue.report import Format, render_verdicts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OK = Verdict("honest", "m", Check.LOGPROBS, State.OK, "as an honest server", "r", since=NOON, n=96)
WORSE = Verdict(
    "replica-12",
    "m",
    Check.CONTEXT,
    State.WORSE,
    "departs from 1,024 tokens on",
    "r",
    cause=Cause.CONTEXT,
    alternatives=(Cause.NUMERICS,),
    since=NOON,
    metric="kl",
    value=0.41234,
    unit="nats",
    interval=Interval(0.32, None, 0.99),
    n=96,
    onset=1024,
)
CHANGED = Verdict(
    "b", "m", Check.TOKENS, State.CHANGED, "another <template> | \x00BOS", "r", cause=Cause.PROMPT
)
UNKNOWN = Verdict("b", "m", Check.WIRE, State.UNKNOWN, "no answer", "r")
ALL = (OK, WORSE, CHANGED, UNKNOWN)


def rendered(form: Format, verdicts: tuple[Verdict, ...] = ALL, width: int = 100) -> str:
    file = io.StringIO()
    render_verdicts(verdicts, form, Console(file=file, width=width))
    return file.getvalue()


def test_json_has_the_schema_and_every_field_with_nothing_measured_as_null() -> None:
    report = json.loads(rendered(Format.JSON))
    assert report["schema"] == 1
    assert len(report["verdicts"]) == 4
    first, worse = report["verdicts"][:2]
    assert list(first) == [field.name for field in fields(Verdict)]
    assert first["value"] is None
    assert first["interval"] is None
    assert worse == {
        "endpoint": "replica-12",
        "model": "m",
        "check": "context",
        "verdict": "WORSE",
        "reason": "departs from 1,024 tokens on",
        "run": "r",
        "cause": "context",
        "alternatives": ["numerics"],
        "since": "2026-03-01T12:00:00Z",
        "metric": "kl",
        "value": 0.41234,
        "unit": "nats",
        "interval": {"low": 0.32, "high": None, "level": 0.99},
        "n": 96,
        "detectable_effect": None,
        "onset": 1024,
    }


def test_junit_counts_drift_as_failure_and_unmeasured_as_error_in_valid_xml() -> None:
    report = ElementTree.fromstring(rendered(Format.JUNIT))  # noqa: S314 - our own output
    assert (report.get("tests"), report.get("failures"), report.get("errors")) == ("4", "2", "1")
    assert [suite.get("name") for suite in report] == ["honest", "replica-12", "b"]
    assert [[child.tag for child in case] for suite in report for case in suite] == [
        [],
        ["failure"],
        ["failure"],
        ["error"],
    ]
    failure = report.find("testsuite[@name='b']/testcase[@name='tokens']/failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("CHANGED", "another <template> | BOS")


def test_a_markdown_row_has_as_many_cells_as_the_title_whatever_a_reason_holds() -> None:
    lines = rendered(Format.MARKDOWN).splitlines()
    assert len(lines) == 6
    assert {line.replace("\\|", "").count("|") for line in lines} == {10}
    assert "| context ≥ 1,024 | 0.412 nats | 0.32..inf | 96 | 2026-03-01 12:00 |" in lines[3]


def test_the_table_fits_a_hundred_columns_with_every_number_on_one_line() -> None:
    lines = rendered(Format.TABLE).splitlines()
    assert max(len(line) for line in lines) <= 100
    row = next(line for line in lines if line.startswith("replica-12"))
    assert " ".join(row.split()) == (
        "replica-12 context WORSE context ≥ 1,024 0.412 nats 0.32..inf 96 2026-03-01 12:00"
    )
    assert "interval (0.99)" in lines[0]
    assert "replica-12 context: departs from 1,024 tokens on" in lines
    assert "b wire: no answer" in lines


def test_an_endpoints_name_is_text_and_no_markup() -> None:
    odd = Verdict("[red]x", "m", Check.WIRE, State.UNKNOWN, "[bold]no answer", "r")
    assert "[red]x" in rendered(Format.TABLE, (odd,)).splitlines()[1]
    assert "[bold]no answer" in rendered(Format.TABLE, (odd,))


@pytest.mark.parametrize("form", Format)
def test_no_verdicts_make_a_report_that_says_so(form: Format) -> None:
    assert rendered(form, ()).strip()


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ((), ExitCode.UNMEASURED),
        ((OK,), ExitCode.FINE),
        ((OK, UNKNOWN), ExitCode.UNMEASURED),
        ((OK, UNKNOWN, CHANGED), ExitCode.DRIFT),
        ((WORSE,), ExitCode.DRIFT),
    ],
)
def test_drift_goes_before_unmeasured_and_nothing_is_not_fine(
    verdicts: tuple[Verdict, ...], code: ExitCode
) -> None:
    assert exit_code(verdicts) is code


def test_without_a_terminal_progress_is_a_line_a_quarter_and_the_last_one_is_complete() -> None:
    file = io.StringIO()
    progress = progress_on(Console(file=file, width=40))
    assert isinstance(progress, Lines)
    with progress:
        progress.say("At most 1,000 requests, which is a line longer than the console is wide")
        progress.begin("acme", 10)
        for _ in range(10):
            progress.advance("acme")
    assert file.getvalue().splitlines() == [
        "At most 1,000 requests, which is a line longer than the console is wide",
        "acme: 3 of 10",
        "acme: 5 of 10",
        "acme: 8 of 10",
        "acme: 10 of 10",
    ]


def test_on_a_terminal_progress_is_a_bar_that_vanishes_and_what_was_said_stays() -> None:
    file = io.StringIO()
    progress = progress_on(Console(file=file, force_terminal=True, width=80))
    assert isinstance(progress, Bars)
    with progress:
        progress.say("At most [3] requests")
        progress.begin("acme", 3)
        progress.advance("acme", 3)
    assert "At most [3] requests" in file.getvalue()
    assert "3/3" in file.getvalue()
