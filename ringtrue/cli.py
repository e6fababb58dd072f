"""The command line: a table of commands, each loaded when it is asked for."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer

from ringtrue.errors import RingtrueError
from ringtrue.exit_codes import ExitCode


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command lives, ``module:name`` of a function or a ``typer.Typer`` group, and its help."""

    target: str
    help: str


COMMANDS: Mapping[str, Command] = {
    "demo": Command(
        "collector.demo:demo", "Honest and faulty replicas on this machine, one night, the verdicts."
    ),
    "inspect": Command("probes.commands:inspect", "Find out what an endpoint can do, and test its logprobs."),
    "probe": Command("collector.commands:probe", "Examine the endpoints now."),
    "replay": Command("evals.replay.commands:replay", "Run the drift detectors over a recorded series."),
    "validate": Command(
        "evals.validate.commands:validate", "Judge recorded exchanges: tool calls and the shape of output."
    ),
    "tokens": Command(
        "evals.tokens.commands:app", "Compare token IDs and templates: was the prompt the model's own?"
    ),
    "nightly": Command("collector.commands:nightly", "Run one scheduled cycle."),
    "verdicts": Command("collector.commands:verdicts", "Show the current verdicts; accept a change."),
    "baseline": Command(
        "evals.baseline.commands:baseline", "Store what a model says of a corpus: build, list, show, verify."
    ),
    "compare": Command(
        "evals.compare.commands:compare", "Compare a candidate with a reference over the whole vocabulary."
    ),
    "layers": Command(
        "evals.layers.commands:layers", "Tell in which layers a candidate loses what the reference knows."
    ),
    "serve": Command("reference_engine.commands:serve", "Serve models, with faults if you like."),
}


def main() -> None:
    """Run the command of ``sys.argv`` and exit with its code."""
    # Read when torch loads. Threads that spin while they wait take the cores from the event loop,
    # which then can't feed them: the demo takes half as long again with them.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(run(COMMANDS, sys.argv[1:]))


def run(commands: Mapping[str, Command], arguments: Sequence[str]) -> int:
    """Run one command and return its exit code.

    What goes wrong becomes one line on stderr. With ``RINGTRUE_DEBUG=1`` the
    exception itself comes through, with its traceback.
    """
    try:
        app = typer.main.get_command(build_app(commands, arguments))
        app.main(list(arguments), prog_name="ringtrue")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.FINE
    except KeyboardInterrupt:
        return _end("interrupted", ExitCode.INTERRUPTED)
    except Exception as error:
        if os.environ.get("RINGTRUE_DEBUG") == "1":
            raise
        return _end(f"error: {_in_words(error)}", getattr(error, "exit_code", ExitCode.UNMEASURED))
    return ExitCode.FINE


def build_app(commands: Mapping[str, Command], arguments: Sequence[str]) -> typer.Typer:
    """Return the application, of which only the command that ``arguments`` name is loaded.

    The others are known by name and help line, so that ``--help`` imports none of them.
    """
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(_root)
    asked = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, command in commands.items():
        loaded = _load(command.target) if name == asked else _not_loaded
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name, help=command.help)
        else:
            app.command(name, help=command.help)(loaded)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ringtrue {installed_version('ringtrue')}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Tell whether the endpoints serving a model still ring true, and which layer is to blame."""


def _load(target: str) -> Callable[..., Any] | typer.Typer:
    module, _, name = target.partition(":")
    loaded: Callable[..., Any] | typer.Typer = getattr(import_module(module), name)
    if not isinstance(loaded, typer.Typer):
        return _interruptible(loaded)
    group = loaded.registered_callback
    if group is not None and group.callback is not None:
        group.callback = _interruptible(group.callback)
    for command in loaded.registered_commands:
        if command.callback is not None:
            command.callback = _interruptible(command.callback)
    return loaded


def _interruptible(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def interruptible(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except KeyboardInterrupt:
            # Typer would exit with 130 as well, but without a word.
            raise typer.Exit(_end("interrupted", ExitCode.INTERRUPTED)) from None

    return interruptible


def _not_loaded() -> None:
    """Stand in for a command that was not asked for."""


def _in_words(error: Exception) -> str:
    if isinstance(error, RingtrueError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"the module {error.name} is missing. Install it with: pip install 'ringtrue[all]'"
    # The message of a foreign exception may quote what it choked on, a secret included.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
    return f"a fault in ringtrue ({place}). Set RINGTRUE_DEBUG=1 to see it whole, and please report it"


def _end(line: str, code: int) -> int:
    typer.echo(line, err=True)
    return code
