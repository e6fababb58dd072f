"""The commands ``probe``, ``nightly`` and ``verdicts``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from collector.choice import choose, one_endpoint, with_seed
from probes.clock import system_clock
from ringtrue.config import DEFAULT_PATH, Settings, load_settings
from ringtrue.errors import UsageError
from ringtrue.exit_codes import exit_code
from ringtrue.records import Check, Verdict
from ringtrue.report import Format, render_verdicts, report_console
from ringtrue.store import open_store

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print the verdicts.")]
NamesOption = Annotated[
    list[str] | None, typer.Option("--endpoint", "-e", help="Only this endpoint; may be repeated.")
]
WaitOption = Annotated[bool, typer.Option("--wait", help="Wait for a cycle that is running.")]


def probe(
    *,
    config: ConfigOption = DEFAULT_PATH,
    endpoint: NamesOption = None,
    url: Annotated[str | None, typer.Option(help="Examine this base URL, without a file.")] = None,
    model: Annotated[str | None, typer.Option(help="The model's name at --url.")] = None,
    dialect: Annotated[str, typer.Option(help="What --url speaks: openai, vllm, sglang, ...")] = "openai",
    api_key: Annotated[str | None, typer.Option(help="The key for --url, as env:NAME.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Choose other prompts.")] = None,
    record: Annotated[Path | None, typer.Option(help="Append every exchange to this file.")] = None,
    store: Annotated[bool, typer.Option("--store/--no-store", help="Keep the results.")] = True,
    wait: WaitOption = False,
    report: FormatOption = Format.TABLE,
) -> None:
    """Examine the endpoints now."""
    if url is None:
        settings = choose(load_settings(config), endpoint)
    else:
        settings = one_endpoint(url, model, dialect=dialect, api_key=api_key)
    if seed is not None:
        settings = with_seed(settings, seed)
    _report(_cycle(settings, record=record, keep=store, wait=wait), report)


def nightly(
    *, config: ConfigOption = DEFAULT_PATH, wait: WaitOption = False, report: FormatOption = Format.TABLE
) -> None:
    """Run one scheduled cycle."""
    _report(_cycle(load_settings(config), wait=wait), report)


verdicts = typer.Typer(add_completion=False, help="The current verdicts; accept a change.")


@verdicts.callback(invoke_without_command=True)
def show(
    ctx: typer.Context,
    *,
    config: ConfigOption = DEFAULT_PATH,
    endpoint: NamesOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Also endpoints no longer configured.")] = False,
    report: FormatOption = Format.TABLE,
) -> None:
    """Show the current verdicts; ``accept`` accepts a change."""
    if ctx.invoked_subcommand is not None:
        if endpoint or everything or report is not Format.TABLE:
            raise UsageError("takes its own options", where="accept", remedy="Write them after `accept`")
        ctx.obj = config
        return
    settings = load_settings(config)
    names = {chosen.name for chosen in choose(settings, endpoint).endpoints}
    with closing(open_store(settings.store.url, clock=system_clock().now, read_only=True)) as store:
        current = store.current_verdicts()
    _report(tuple(verdict for verdict in current if everything or verdict.endpoint in names), report)


@verdicts.command()
def accept(
    ctx: typer.Context,
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="Whose change it is.")],
    *,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who accepts it.")],
    why: Annotated[str, typer.Option(metavar="TEXT", help="Why it is no fault.")],
    check: Annotated[Check, typer.Option(help="Of which check.")] = Check.LOGPROBS,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The configuration file.", show_default="ringtrue.toml"),
    ] = None,
    report: FormatOption = Format.TABLE,
) -> None:
    """Accept a change that a series of nights showed: its nights become the new baseline."""
    from collector.acceptance import accept as accept_change  # with numpy and scipy

    clock = system_clock()
    settings = load_settings(config or ctx.obj)
    (chosen,) = choose(settings, [endpoint], where="ENDPOINT").endpoints
    open_store(settings.store.url, clock=clock.now, read_only=True).close()  # there has to be one
    with closing(open_store(settings.store.url, clock=clock.now)) as store:
        accepted, verdict = accept_change(store, chosen.name, check, by=by, why=why, at=clock.now())
    since = min(alarm.since for alarm in accepted)
    typer.echo(f"Accepted: the baseline of {endpoint} {check.value} begins {since:%Y-%m-%d}", err=True)
    render_verdicts((verdict,), report, report_console())


def _cycle(
    settings: Settings, *, record: Path | None = None, keep: bool = True, wait: bool = False
) -> tuple[Verdict, ...]:
    from collector.session import run_session  # with torch, which showing verdicts does not need

    return run_session(settings, record=record, keep=keep, wait=wait)


def _report(found: tuple[Verdict, ...], form: Format) -> None:
    """Print the verdicts, and exit as they say."""
    render_verdicts(found, form, report_console())
    raise typer.Exit(exit_code(found))
