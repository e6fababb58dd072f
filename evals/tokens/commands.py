"""``ringtrue tokens``: was the prompt the model's own?"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evals.tokens.endpoints import EndpointOrder
from probes.clock import system_clock
from ringtrue.config import DEFAULT_PATH
from ringtrue.errors import UsageError
from ringtrue.progress import ProgressReport, progress_on
from ringtrue.report import Format, report_console

if TYPE_CHECKING:
    from evals.tokens.named_format import NamedFormat

UrlOption = Annotated[str | None, typer.Option(help="The server's base URL, with or without /v1.")]
ModelOption = Annotated[str | None, typer.Option(help="Its model's name. Default: the first it lists.")]
DialectOption = Annotated[str, typer.Option(help="auto, or what it speaks: vllm, sglang, openai, ...")]
KeyOption = Annotated[str | None, typer.Option(help="The key, as env:NAME.")]
TlsOption = Annotated[bool, typer.Option(help="Check the certificate.")]
EndpointOption = Annotated[
    str | None, typer.Option("--endpoint", "-e", help="An endpoint of the configuration, instead of --url.")
]
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")]
TemplateOption = Annotated[
    Path | None, typer.Option(help="A template in place of the model's own: a file, or what holds one.")
]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print.")]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Token IDs, counts and templates against a model's.",
)


@app.command()
def diff(
    *,
    url: UrlOption = None,
    model: ModelOption = None,
    dialect: DialectOption = "auto",
    api_key: KeyOption = None,
    verify_tls: TlsOption = True,
    endpoint: EndpointOption = None,
    config: ConfigOption = DEFAULT_PATH,
    against: Annotated[
        str | None, typer.Option(help="Another server's base URL, in place of a model's template.")
    ] = None,
    against_model: Annotated[
        str | None, typer.Option(help="Its model's name. Default: the first it lists.")
    ] = None,
    against_dialect: Annotated[str, typer.Option(help="As --dialect, of --against.")] = "auto",
    against_api_key: Annotated[str | None, typer.Option(help="As --api-key, of --against.")] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="The model whose template and tokenizer are the right ones; its weights are not read. "
            "Default: that of the configuration with --endpoint, else the embedded one."
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="The same as a file: tokenizer.json, GGUF, tiktoken, SentencePiece, or a folder."),
    ] = None,
    template: TemplateOption = None,
    chat: Annotated[list[str] | None, typer.Option("--chat", help="Only this chat; may be repeated.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All chats, not a handful.")] = False,
    chats: Annotated[
        Path | None, typer.Option(help="Your own chats: whole chat requests, one JSON object a line.")
    ] = None,
    used: Annotated[
        Path | None, typer.Option(help="IDs from a file, no server: a JSON list, or recorded exchanges.")
    ] = None,
    expected: Annotated[
        Path | None, typer.Option(help="What --used should be, in place of what a model's template gives.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write all differences side by side to this HTML file.")
    ] = None,
    report: FormatOption = Format.TABLE,
) -> None:
    """Are the token IDs that a server used the model's own? Where do they first differ, and by which layer?

    Exits with 0 if they are, 1 if some differ, 3 if none were shown.
    """
    from evals.tokens.diff import ChatOrder, diff_files, diff_live
    from evals.tokens.diff_report import diff_exit_code, render_diff
    from evals.tokens.page import write_page

    now = system_clock().now()
    order = EndpointOrder(url, model, dialect, api_key, verify_tls, endpoint, config)
    if used is not None:
        if url or endpoint or against:
            raise UsageError("--used compares files, and a server is named as well", remedy="Leave one out")
        held = _format(reference, tokenizer, template, order)
        found = diff_files(used, expected, held, now=now)
    elif expected is not None:
        raise UsageError("--expected needs --used", remedy="Add --used FILE")
    else:
        spec = order.spec()
        other = None
        if against is not None:
            other = EndpointOrder(against, against_model, against_dialect, against_api_key, verify_tls).spec()
        held = _format(reference, tokenizer, template, order)
        which = ChatOrder(tuple(chat or ()), everything, chats)
        with _progress() as progress:
            found = diff_live(spec, other, which, held, env=os.environ, now=now, progress=progress)
    if html is not None:
        write_page(found, html)
    render_diff(found, now, report, report_console())
    raise typer.Exit(diff_exit_code(found, now))


@app.command()
def infer(
    *,
    url: UrlOption = None,
    model: ModelOption = None,
    dialect: DialectOption = "auto",
    api_key: KeyOption = None,
    verify_tls: TlsOption = True,
    endpoint: EndpointOption = None,
    config: ConfigOption = DEFAULT_PATH,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            help="A model that it may be; the first is the one that is promised. May be repeated. "
            "Any file that holds a tokenizer will do. Default: as for diff."
        ),
    ] = None,
    template: TemplateOption = None,
    counts: Annotated[
        Path | None, typer.Option(help="Counts from a file, no server: what --format json gave.")
    ] = None,
    hidden: Annotated[
        int | None,
        typer.Option(help="Tokens that the server adds to every prompt, 0 for none. Default: any number."),
    ] = None,
    repetitions: Annotated[
        int, typer.Option(min=1, help="How often each request is sent: a count that varies is none.")
    ] = 2,
    report: FormatOption = Format.TABLE,
) -> None:
    """From counts of prompt tokens alone: which templates and faults are consistent with them?

    Exits with 0 if the promised model is one of them, 1 if it is not, 3 if too few counts were told.
    """
    from evals.tokens.asking import introduced
    from evals.tokens.counting import ask_counts, read_counts
    from evals.tokens.infer_report import infer_exit_code, render_inferred
    from evals.tokens.inference import asks_for
    from evals.tokens.inference import infer as hold
    from evals.tokens.reference import open_format

    clock = system_clock()
    now = clock.now()
    order = EndpointOrder(url, model, dialect, api_key, verify_tls, endpoint, config)
    if counts is not None and (url or endpoint):
        raise UsageError("--counts reads a file, and a server is named as well", remedy="Leave one out")
    names = reference or [order.reference()]
    formats = [open_format(name, template if at == 0 else None) for at, name in enumerate(names)]
    if counts is not None:
        name, served, told = str(counts), names[0], read_counts(counts)
    else:
        with _progress() as progress:
            spec = asyncio.run(introduced(order.spec(), os.environ))
            asked = ask_counts(
                spec, asks_for(formats), repetitions, env=os.environ, clock=clock, progress=progress
            )
            name, served, told = spec.name, spec.model, asyncio.run(asked)
    found = hold(name, served, told, formats, now=now, hidden=hidden)
    render_inferred(found, now, report, report_console())
    raise typer.Exit(infer_exit_code(found, now))


@app.command()
def lint(
    files: Annotated[
        list[Path],
        typer.Argument(help="Template files, tokenizer_config.json, folders of models, or .gguf files."),
    ],
    *,
    strict: Annotated[bool, typer.Option(help="Exit with 1 for remarks too.")] = False,
    report: FormatOption = Format.TABLE,
) -> None:
    """Read chat templates for faults, before any server renders them.

    Exits with 1 if one has a warning or worse.
    """
    from evals.tokens.lint_report import lint_exit_code, lint_files, render_lint
    from evals.tokens.template_files import read_templates

    found = lint_files(read_templates(files))
    render_lint(found, report, report_console())
    raise typer.Exit(lint_exit_code(found, strict=strict))


def _format(
    reference: str | None, tokenizer: Path | None, template: Path | None, order: EndpointOrder
) -> NamedFormat:
    from evals.tokens.reference import open_format

    if reference is not None and tokenizer is not None:
        raise UsageError("--reference and --tokenizer name two tokenizers", remedy="Leave one out")
    name = reference or (str(tokenizer) if tokenizer is not None else order.reference())
    return open_format(name, template)


@contextmanager
def _progress() -> Iterator[ProgressReport]:
    from rich.console import Console

    with progress_on(Console(stderr=True)) as progress:
        yield progress
