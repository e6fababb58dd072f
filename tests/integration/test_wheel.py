"""The wheel as a user gets it: built, installed into a clean environment, run from another directory."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

USE = """
import importlib, json, sys
from datetime import UTC, datetime
from probes.context_curve import load_text
from ringtrue.store import open_store

open_store(f"sqlite:///{sys.argv[1]}", clock=lambda: datetime.now(UTC)).close()
files = {name: importlib.import_module(name).__file__ for name in sys.argv[2:]}
print(json.dumps({"files": files, "text": len(load_text("english"))}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, ROOT],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment that holds the wheel and, of ours, only the dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "-q", "--python", python, "install", "--no-deps", "--no-index"]
    subprocess.run([*install, wheel], check=True)
    # A path that a .pth file adds is searched, but its own .pth files, the editable install, are not.
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_the_wheel_holds_the_packages_their_data_and_nothing_else(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        *PACKAGES,
        f"ringtrue-{PROJECT['project']['version']}.dist-info",
    }
    assert "ringtrue/migrations/versions/v0001_initial.py" in names
    assert "ringtrue/migrations/versions/v0002_alarms.py" in names
    assert "probes/texts/cjk.txt" in names


def test_the_command_runs_from_another_directory(environment: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [environment / "bin" / "ringtrue", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"ringtrue {PROJECT['project']['version']}\n"


def test_packages_texts_and_migrations_come_from_the_installed_wheel(
    environment: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [environment / "bin" / "python", "-c", USE, tmp_path / "store.db", *PACKAGES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    assert all(file.startswith(str(environment)) for file in result["files"].values()), result
    assert result["text"] > 100_000
