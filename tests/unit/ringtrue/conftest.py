"""A store in a new file, by a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ringtrue.store import Store, open_store
from tests.unit.ringtrue.kept import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ringtrue.db"


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[Store]:
    store = open_store(f"sqlite:///{path}", clock=clock)
    store.start_run("r1")
    yield store
    store.close()
