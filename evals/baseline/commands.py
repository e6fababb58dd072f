"""``ringtrue baseline``: what a model said of a corpus, built once, listed, shown and verified."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from evals.baseline.report import render_built, render_list, render_manifest
from reference_engine.baselines.corpus_files import CorpusForm
from reference_engine.baselines.store import DEFAULT_STORE, BaselineStore
from ringtrue.errors import StoreError, UsageError
from ringtrue.exit_codes import ExitCode
from ringtrue.progress import ProgressReport, progress_on
from ringtrue.report import Format, PlainFormat, report_console

StoreOption = Annotated[Path, typer.Option("--store", help="The folder that holds baselines.")]
NameArgument = Annotated[str, typer.Argument(metavar="ID", help="The baseline's id, or how it begins.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
FormOption = Annotated[PlainFormat, typer.Option("--format", "-f", help="How to print.")]

baseline = typer.Typer(
    no_args_is_help=True, add_completion=False, help="What a model said of a corpus, stored."
)


@baseline.command()
def build(
    model: Annotated[str, typer.Argument(help="NAME, Hugging Face id, folder or .gguf file; NAME@bf16.")],
    corpus: Annotated[
        list[Path],
        typer.Argument(help="Files: text, or JSONL of chats or token IDs, whole chat requests too."),
    ],
    *,
    k: Annotated[
        str, typer.Option("--k", help="The likeliest tokens to keep at each position, or all.")
    ] = "20",
    states: Annotated[
        bool,
        typer.Option("--states", help="Keep hidden states: the whole distribution can be had from them."),
    ] = False,
    form: Annotated[
        CorpusForm | None, typer.Option(help="What the files hold. Default: by name and first line.")
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Cut text into sequences of so many tokens. Default: 512.")
    ] = None,
    generation_prompt: Annotated[
        bool, typer.Option(help="End chats with the template's generation prompt, as servers do.")
    ] = True,
    store: StoreOption = DEFAULT_STORE,
    device: DeviceOption = "auto",
    url: Annotated[
        str | None, typer.Option(help="Take the scores from this vLLM server, once it is checked.")
    ] = None,
    vllm_python: Annotated[
        Path | None, typer.Option(help="The same from a vLLM that this interpreter starts.")
    ] = None,
    served_model: Annotated[
        str | None, typer.Option(help="The model's name at --url. Default: the first it lists.")
    ] = None,
    api_key: Annotated[str | None, typer.Option(help="The key for --url, as env:NAME.")] = None,
    sample: Annotated[
        int | None, typer.Option(help="Sequences recomputed to check the server. Default: 8.")
    ] = None,
    report: FormOption = PlainFormat.TABLE,
) -> None:
    """Build a baseline. Killed at any point, the same command goes on where it stopped."""
    # Only building and recomputing need torch: listing must stay quick.
    from evals.baseline.building import BuildOrder, build_exact
    from evals.baseline.served import ServerOrder, build_served

    order = BuildOrder(
        model=model,
        corpus=tuple(corpus),
        store=BaselineStore(store),
        k=k,
        states=states,
        form=form,
        length=length,
        generation_prompt=generation_prompt,
        device=device,
    )
    asks_server = url is not None or vllm_python is not None
    if not asks_server and (served_model, api_key, sample) != (None, None, None):
        raise UsageError(
            "--served-model, --api-key and --sample are about a server, and none is named",
            remedy="Add --url or --vllm-python",
        )
    with _progress() as progress:
        if asks_server:
            server = ServerOrder(url, vllm_python, served_model, api_key, sample)
            stored, new = build_served(order, server, os.environ, progress)
        else:
            stored, new = build_exact(order, progress)
    render_built(stored, report, report_console(), new=new)


@baseline.command(name="list")
def list_all(*, store: StoreOption = DEFAULT_STORE, report: FormOption = PlainFormat.TABLE) -> None:
    """List the baselines of a store."""
    held = BaselineStore(store)
    found = list(held.all())
    render_list(held, found, report, report_console())
    if any(isinstance(entry, StoreError) for entry in found):
        raise typer.Exit(ExitCode.UNMEASURED)


@baseline.command()
def show(
    name: NameArgument, *, store: StoreOption = DEFAULT_STORE, report: FormOption = PlainFormat.TABLE
) -> None:
    """Show what a baseline is and all that its content depends on."""
    render_manifest(BaselineStore(store).get(name), report, report_console())


@baseline.command()
def verify(
    name: NameArgument,
    *,
    recompute: Annotated[int, typer.Option(min=0, help="Compute so many sequences again.")] = 0,
    model: Annotated[
        str | None, typer.Option(help="The model to recompute with, if it moved. Default: the manifest's.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides which sequences.")] = 0,
    store: StoreOption = DEFAULT_STORE,
    device: DeviceOption = "auto",
    report: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.TABLE,
) -> None:
    """Hold every file of a baseline against its hash, and a sample against the model.

    Exits with 0 if all is well, 1 if a recomputed sequence differs, 3 if a file is damaged.
    """
    from evals.baseline.verdict import render_verification
    from evals.baseline.verifying import Recomputation, verify_baseline

    stored = BaselineStore(store).get(name)
    with _progress() as progress:
        found = verify_baseline(stored, Recomputation(recompute, model, device, seed), progress)
    render_verification(found, report, report_console())
    raise typer.Exit(found.exit_code)


@contextmanager
def _progress() -> Iterator[ProgressReport]:
    from rich.console import Console

    with progress_on(Console(stderr=True)) as progress:
        yield progress
