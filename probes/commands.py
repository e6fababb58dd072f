"""The command ``inspect``."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from probes.inspection import inspect_endpoint
from probes.inspection_report import print_tables, to_json, to_junit, to_markdown
from ringtrue.records import EndpointSpec, Limits
from ringtrue.report import Format, report_console


def inspect(
    url: Annotated[str, typer.Argument(help="Base URL, with or without /v1.")],
    *,
    model: Annotated[str | None, typer.Option(help="Model name; default: the first that is served.")] = None,
    api_key: Annotated[str | None, typer.Option(help="The key, as env:NAME.")] = None,
    dialect: Annotated[
        str, typer.Option(help="auto, or what the server speaks: openai, vllm, sglang, ...")
    ] = "auto",
    verify_tls: Annotated[bool, typer.Option(help="Check the certificate.")] = True,
    report: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.TABLE,
) -> None:
    """Find out what an endpoint can do, and test its logprobs."""
    spec = EndpointSpec(
        name="inspected endpoint",
        base_url=url,
        model=model or "",
        dialect="openai" if dialect == "auto" else dialect,
        api_key=api_key,
        verify_tls=verify_tls,
        limits=Limits(max_attempts=2),
    )
    found = asyncio.run(inspect_endpoint(spec, os.environ, detect_dialect=dialect == "auto"))
    console = report_console()
    match report:
        case Format.TABLE:
            print_tables(found, console)
        case Format.JSON:
            typer.echo(to_json(found))
        case Format.MARKDOWN:
            typer.echo(to_markdown(found))
        case Format.JUNIT:
            typer.echo(to_junit(found))
    raise typer.Exit(found.exit_code)
