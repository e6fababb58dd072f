"""A replay on paper: tables for people, JSON for programs, Markdown for tickets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evals.replay.outcomes import Alarm, Replay
from ringtrue.exit_codes import ExitCode
from ringtrue.report import SCHEMA, PlainFormat, markdown_table

_HEADS = ("endpoint", "detector", "series", "batch", "time (UTC)", "since", "requests", "e-value")
_QUIET = ("endpoint", "detector", "series", "batches", "largest e-value", "detectable shift")


def render_replay(found: Replay, form: PlainFormat, console: Console) -> None:
    """Write the report to the console and nothing else, so that it can be piped."""
    match form:
        case PlainFormat.TABLE:
            _print_tables(found, console)
        case PlainFormat.JSON:
            console.file.write(f"{to_json(found)}\n")
        case PlainFormat.MARKDOWN:
            console.file.write(f"{to_markdown(found)}\n")


def replay_exit_code(found: Replay) -> ExitCode:
    """Return DRIFT for any alarm, UNMEASURED when no series could be judged, else FINE."""
    if found.alarms:
        return ExitCode.DRIFT
    return ExitCode.FINE if found.quiet or found.notices else ExitCode.UNMEASURED


def to_json(found: Replay) -> str:
    """Return one object with schema 1: ``alarms`` and ``notices`` of one shape, times in ISO 8601."""
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "alarms": [_alarm(alarm) for alarm in found.alarms],
        "notices": [_alarm(notice) for notice in found.notices],
        "quiet": [asdict(quiet) for quiet in found.quiet],
        "unknown": [asdict(unknown) for unknown in found.unknown],
        "detectors": found.detectors,
        "budget": {
            "false_alarms_per_year": found.per_year,
            "streams": found.streams,
            "batches_per_year": found.batches_a_year,
            "threshold": found.threshold,
        },
        "lines": found.lines,
        "notes": found.notes,
    }
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def to_markdown(found: Replay) -> str:
    """Return a summary, GitHub-flavoured tables, and what could not be judged."""
    parts = [" ".join(_summary(found))]
    if found.alarms:
        parts.append(markdown_table(_HEADS, [_cells(alarm) for alarm in found.alarms]))
    if found.notices:
        parts += ["Notices", markdown_table(_HEADS, [_cells(notice) for notice in found.notices])]
    if found.quiet:
        parts += ["Quiet", markdown_table(_QUIET, _quiet(found))]
    lines = [*_unknown(found), *found.notes]
    if lines:
        parts.append("\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts)


def _alarm(alarm: Alarm) -> dict[str, Any]:
    return {
        "endpoint": alarm.endpoint,
        "detector": alarm.detector,
        "t": datetime.fromtimestamp(alarm.at, UTC).isoformat(),
        "batch": alarm.batch,
        "requests": alarm.requests,
        "e_value": alarm.e_value,
        "since": alarm.since,
        "evidence": dict(alarm.evidence),
    }


def _print_tables(found: Replay, console: Console) -> None:
    for title, alarms, colour in (
        ("Alarms", found.alarms, "bold red"),
        ("Notices: no alarms, outside the budget", found.notices, "yellow"),
    ):
        if alarms:
            _print(console, Text(title, colour), _HEADS, [_cells(alarm) for alarm in alarms])
    if found.quiet:
        _print(console, Text("Quiet", "green"), _QUIET, _quiet(found))
    for line in _unknown(found):
        console.print(Text(line, "magenta"))
    for line in (*found.notes, *_summary(found)):
        console.print(Text(line))


def _print(console: Console, title: Text, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold", justify="right" if "e-value" in head else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(title)
    console.print(table)
    console.print()


def _summary(found: Replay) -> list[str]:
    used = found.lines.get("used", 0)
    return [
        f"{len(found.alarms)} alarms, {len(found.quiet)} series quiet, {len(found.unknown)} unknown; "
        f"{used:,} lines used, {found.lines.get('bad', 0):,} bad.",
        f"A series alarms at an e-value of {found.threshold:,.0f}: {found.per_year:g} false alarms a year "
        f"of {found.batches_a_year:,.0f} batches, over {found.streams} series.",
    ]


def _cells(alarm: Alarm) -> tuple[str, ...]:
    return (
        alarm.endpoint,
        alarm.detector,
        str(alarm.evidence.get("series", "")),
        alarm.batch,
        f"{datetime.fromtimestamp(alarm.at, UTC):%Y-%m-%d %H:%M}",
        alarm.since,
        f"{alarm.requests:,}",
        f"{alarm.e_value:.3g}",
    )


def _quiet(found: Replay) -> list[tuple[str, ...]]:
    return [
        (
            quiet.endpoint,
            quiet.detector,
            quiet.series,
            str(quiet.batches),
            f"{quiet.e_value:.3g}",
            "" if quiet.detectable is None else f"{quiet.detectable:.3g} {quiet.unit}".strip(),
        )
        for quiet in found.quiet
    ]


def _unknown(found: Replay) -> list[str]:
    return [f"UNKNOWN {one.endpoint}, {one.detector} ({one.series}): {one.reason}" for one in found.unknown]
