"""The command ``validate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringtrue.report import Format, counted, report_console


def validate(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Recorded exchanges, one JSON object a line: id, request, and response or chunks with done, "
            "as `ringtrue probe --record` writes them; - is standard input."
        ),
    ],
    *,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            help="Exchanges of the reference with the same prompts: which of them are answered by a call. "
            "With two answers to a prompt its own agreement stands beside. May be repeated."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the intervals of differences.")] = 0,
    report: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.TABLE,
) -> None:
    """Judge recorded exchanges: what is wrong with their tool calls and the shape of their output."""
    from rich.console import Console

    from evals.validate.reading import BadLines, read_records
    from evals.validate.report import line_of, render_summary, validate_exit_code
    from evals.validate.running import Validation
    from evals.validate.summary import Summary
    from ringtrue.errors import MeasureError, UsageError
    from ringtrue.exit_codes import ExitCode
    from ringtrue.progress import progress_on

    bad, console, found = BadLines(), report_console(), Summary()
    with progress_on(Console(stderr=True)) as progress:
        validation = Validation(read_records(reference or (), bad, progress))
        for record in validation.judge(read_records(files, bad, progress)):
            found.add(record)
            if report is Format.JSON:
                console.file.write(line_of(record).decode())
    found.metrics = validation.metrics()
    found.differences = validation.differences(seed)
    found.broken_pairs = validation.broken_pairs
    render_summary(found, report, console)
    if bad.count:
        others = f"; and {bad.count - len(bad.first):,} more" if bad.count > len(bad.first) else ""
        raise UsageError(
            f"{counted(bad.count, 'line')} can't be judged, the others were: {'; '.join(bad.first)}{others}",
            remedy="Mend or remove these lines",
        )
    code = validate_exit_code(found)
    if code is ExitCode.UNMEASURED:
        raise MeasureError(
            f"nothing could be judged: none of {counted(found.exchanges, 'exchange')} has an answer "
            "to a request whose schemas compile",
            where=", ".join(map(str, files)),
            remedy="Record answers with: ringtrue probe --record FILE",
        )
    raise typer.Exit(code)
