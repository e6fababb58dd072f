"""What the tests of the series share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ringtrue.store import open_store
from tests.unit.collector.bench import Bench, Time, WatchedStore, settings
from tests.unit.collector.nights import Nights


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    held: list[Nights] = []
    store = open_store(f"sqlite:///{tmp_path}/ringtrue.db", clock=lambda: held[0].now)
    held.append(Nights(store))
    yield held[0]
    store.close()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    time = Time()
    store = WatchedStore(tmp_path / "ringtrue.db", lambda: time.now)
    bench = Bench(store, settings(), time=time)
    monkeypatch.setattr("collector.night.examine", bench.examine)
    yield bench
    store.close()
