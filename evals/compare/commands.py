"""The command ``compare``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.report import Format, report_console


class FloorDtype(StrEnum):
    """In which dtype the noise floor is measured."""

    NONE = "none"
    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"


def compare(
    reference: Annotated[
        str, typer.Argument(help="The model that is right: NAME, id, folder or .gguf file.")
    ],
    candidate: Annotated[str, typer.Argument(help="The one to judge, for example NAME@int4.")],
    *,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Text, or JSONL of chats or token IDs; may be repeated. Default: embedded texts."),
    ] = None,
    length: Annotated[
        int | None, typer.Option(min=2, help="Cut text into sequences of so many tokens. Default: 512.")
    ] = None,
    sequences: Annotated[
        int | None,
        typer.Option(min=1, help="Use at most so many. Default: 32 embedded ones, or the whole corpus."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Read the reference's states from this baseline, and its corpus.")
    ] = None,
    store: Annotated[Path, typer.Option(help="The folder that holds baselines.")] = Path("baselines"),
    skip: Annotated[
        int,
        typer.Option(
            min=0, help="Leave out so many positions at the start of each; half the length as llama.cpp does."
        ),
    ] = 0,
    floor: Annotated[
        FloorDtype, typer.Option(help="The dtype of an honest server, for the noise floor.")
    ] = FloorDtype.BF16,
    draws: Annotated[int, typer.Option(min=1, help="Draw the floor's batches so many times.")] = 1,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Exit with 1 if the mean KL is surely beyond it, in nats.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Decides slices, the floor's batches and resamples.")] = 0,
    report: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.TABLE,
) -> None:
    """Compare two models over the whole vocabulary: KL, delta p, perplexity, loss by context."""
    # Only measuring needs torch: the command line itself must stay quick.
    from rich.console import Console

    from evals.compare.measuring import ComparePlan, run_comparison
    from evals.compare.report import render_comparison
    from evals.compare.verdict import judge_budget
    from ringtrue.progress import progress_on
    from ringtrue.stats import clusters_needed

    plan = ComparePlan(
        reference=reference,
        candidate=candidate,
        corpus=tuple(corpus or ()),
        baseline=baseline,
        store=store,
        length=length,
        count=sequences,
        skip=skip,
        floor=None if floor is FloorDtype.NONE else floor.value,
        draws=draws,
        device=device,
        seed=seed,
    )
    with progress_on(Console(stderr=True)) as progress:
        found = run_comparison(plan, progress)
    statistics = found.statistics
    verdict = (
        None
        if budget is None
        else judge_budget(statistics.kl["mean"], budget, clusters_needed(statistics.level))
    )
    render_comparison(found, verdict, report, report_console())
    if verdict is not None:
        raise typer.Exit(verdict.exit_code)
