"""The command ``replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringtrue.report import PlainFormat, report_console


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="JSON objects, one a line: endpoint, t (ISO 8601 or seconds since 1970), batch (default: "
            "the UTC day of t), prompt, and one of top_logprobs (pairs of token and logprob), text, or value "
            "with its metric."
        ),
    ],
    *,
    streams: Annotated[
        int | None,
        typer.Option(min=1, help="Series that share the budget of false alarms. Default: those replayed."),
    ] = None,
    per_year: Annotated[
        float, typer.Option("--false-alarms-per-year", min=1e-6, help="What all of them may cost together.")
    ] = 1.0,
    baseline: Annotated[
        int, typer.Option("--baseline-nights", min=8, help="Batches before a change can be seen.")
    ] = 14,
    detector: Annotated[
        list[str] | None, typer.Option(help="Run only this one; may be repeated. Default: all that apply.")
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(help="Read this metric on the log scale: skewed and never negative. May be repeated."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Chooses which texts are kept where a batch has many.")
    ] = 0,
    report: Annotated[PlainFormat, typer.Option("--format", "-f", help="How to print.")] = PlainFormat.TABLE,
) -> None:
    """Run the drift detectors over a recorded series: when would each have alarmed, and since when?"""
    # scipy and the judges take half a second to load: only when they are needed.
    from rich.console import Console

    from evals.replay.report import render_replay, replay_exit_code
    from evals.replay.running import ReplayPlan, run_replay
    from ringtrue.progress import progress_on

    plan = ReplayPlan(
        paths=tuple(files),
        detectors=tuple(detector or ()),
        streams=streams,
        per_year=per_year,
        baseline=baseline,
        logged=frozenset(log or ()),
        seed=seed,
    )
    with progress_on(Console(stderr=True)) as progress:
        found = run_replay(plan, progress)
    render_replay(found, report, report_console())
    raise typer.Exit(replay_exit_code(found))
