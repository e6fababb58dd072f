"""The command ``layers``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringtrue.report import PlainFormat, report_console


def layers(
    reference: Annotated[
        str, typer.Argument(help="The model that is right: NAME, id, folder or .gguf file.")
    ],
    candidate: Annotated[str, typer.Argument(help="The one to look into, for example NAME@int4.")],
    *,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Text, or JSONL of chats or token IDs; may be repeated. Default: embedded texts."),
    ] = None,
    length: Annotated[int, typer.Option(min=2, help="Cut text into sequences of so many tokens.")] = 256,
    sequences: Annotated[
        int, typer.Option(min=1, help="Use so many: the time grows with tokens x layers squared.")
    ] = 4,
    modules: Annotated[
        int, typer.Option(min=0, help="Look at single modules inside so many of the worst layers.")
    ] = 3,
    budget: Annotated[
        float, typer.Option(min=0, help="Mark the first layer whose cumulative KL is beyond it, in nats.")
    ] = 0.02,
    png: Annotated[Path | None, typer.Option(help="Draw both curves into this file.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Decides the slices of the embedded texts.")] = 0,
    report: Annotated[PlainFormat, typer.Option("--format", "-f", help="How to print.")] = PlainFormat.TABLE,
) -> None:
    """Tell in which layers, and in which modules of the worst, a candidate loses what the reference knows."""
    # Only measuring needs torch: the command line itself must stay quick.
    from rich.console import Console

    from evals.compare.measuring import ComparePlan
    from evals.layers.measuring import run_layers
    from evals.layers.plot import draw_layers, require_writable
    from evals.layers.report import render_layers
    from ringtrue.progress import progress_on

    if png is not None:
        require_writable(png)
    plan = ComparePlan(
        reference=reference,
        candidate=candidate,
        corpus=tuple(corpus or ()),
        length=length,
        count=sequences,
        device=device,
        seed=seed,
    )
    with progress_on(Console(stderr=True)) as progress:
        found = run_layers(plan, progress, modules_in=modules)
        if png is not None:
            draw_layers(found, budget, png)
            progress.say(f"Drew {png}")
    render_layers(found, budget, report, report_console())
