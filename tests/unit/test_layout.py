from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

from ringtrue.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
    "packages"
]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_the_one_of_this_checkout_and_no_namesake(package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin == str(ROOT / package / "__init__.py")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_of_the_table_exists(name: str) -> None:
    module, _, function = COMMANDS[name].target.partition(":")
    assert callable(getattr(importlib.import_module(module), function))
