from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer

from ringtrue.cli import COMMANDS, Command, run
from ringtrue.errors import ConfigError, StoreError

HEAVY = ("torch", "transformers", "sqlalchemy", "alembic", "pydantic", "numpy", "httpx")


def in_a_new_process(*arguments: str) -> tuple[int, str, list[str]]:
    """Return exit code, stdout, and which heavy modules were imported."""
    program = (
        "import json, sys\n"
        "from ringtrue.cli import COMMANDS, run\n"
        f"code = run(COMMANDS, {list(arguments)!r})\n"
        f"print(json.dumps([code, [m for m in {HEAVY!r} if m in sys.modules]]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    code, imported = json.loads(done.stdout.splitlines()[-1])
    return code, done.stdout, imported


def test_help_names_every_command_and_imports_nothing_heavy() -> None:
    code, said, imported = in_a_new_process("--help")
    assert (code, imported) == (0, [])
    assert all(name in said for name in COMMANDS)


def test_version_is_the_distributions_and_imports_nothing_heavy() -> None:
    code, said, imported = in_a_new_process("--version")
    assert (code, imported) == (0, [])
    assert said.startswith("ringtrue 0.")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> dict[str, Command]:
    """Return commands that each end in their own way, and one whose module does not exist."""

    def fine(name: str = "x") -> None:
        typer.echo(f"fine {name}")

    def drift() -> None:
        raise typer.Exit(1)

    def config() -> None:
        raise ConfigError("unknown key", where="ringtrue.toml: a", remedy="Remove it")

    def store() -> None:
        raise StoreError("is damaged", where="x.db")

    def stopped() -> None:
        raise KeyboardInterrupt

    def bug() -> None:
        raise ValueError("sk-planted")

    group = typer.Typer()
    for function in (fine, config, stopped):
        group.command()(function)
    module = ModuleType("commands_under_test")
    targets = {f.__name__: f for f in (fine, drift, config, store, stopped, bug)} | {"group": group}
    for name, target in targets.items():
        setattr(module, name, target)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    table = {name: Command(f"{module.__name__}:{name}", "help") for name in targets}
    return {**table, "absent": Command("no_such_module_here:f", "help")}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fine", "--name", "y"], 0, ""),
        (["drift"], 1, ""),
        (["config"], 2, "error: ringtrue.toml: a: unknown key. Remove it\n"),
        (["store"], 3, "error: x.db: is damaged\n"),
        (["stopped"], 130, "interrupted\n"),
        (["group", "fine", "--name", "y"], 0, ""),
        (["group", "config"], 2, "error: ringtrue.toml: a: unknown key. Remove it\n"),
        (["group", "stopped"], 130, "interrupted\n"),
        (["absent"], 3, "error: the module no_such_module_here is missing."),
    ],
)
def test_each_ending_has_its_code_and_at_most_one_line(
    commands: dict[str, Command],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    assert run(commands, arguments) == code
    captured = capsys.readouterr()
    assert captured.err.startswith(said)
    assert captured.err.count("\n") == bool(said)


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["fine", "--nmae"], ["fine", "extra"], ["group", "nothing"]]
)
def test_wrong_usage_is_2_and_says_how_to_get_help(
    commands: dict[str, Command], capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(commands, arguments) == 2
    assert "--help" in capsys.readouterr().err


def test_a_fault_of_ours_names_its_place_but_not_its_message(
    commands: dict[str, Command], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RINGTRUE_DEBUG", raising=False)
    assert run(commands, ["bug"]) == 3
    said = capsys.readouterr().err
    assert f"ValueError at {Path(__file__)}:" in said
    assert "sk-planted" not in said
    assert "Traceback" not in said


def test_with_debug_the_exception_comes_through(
    commands: dict[str, Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGTRUE_DEBUG", "1")
    with pytest.raises(ValueError, match="sk-planted"):
        run(commands, ["bug"])
    with pytest.raises(ConfigError):
        run(commands, ["config"])
