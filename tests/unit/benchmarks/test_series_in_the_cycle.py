"""A small version of the benchmark of the cycle's window and of how long an alarm stands."""

from importlib import import_module
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend("benchmarks")
    return import_module("series_in_the_cycle")


def test_honest_streams_of_every_kind_do_not_alarm_through_the_window(benchmark: ModuleType) -> None:
    for kind, (draw, metric) in benchmark.KINDS.items():
        nights = draw((6, 200), np.random.default_rng(3))
        assert not benchmark.alarms_by_night(nights, metric).any(), kind


def test_a_lasting_shift_is_seen_and_not_taken_back(benchmark: ModuleType) -> None:
    rows = {(row["kind"], row["shift_sd"]): row for row in benchmark.shifts(streams=20)}
    for kind in ("normal", "AR(0.3)"):
        assert rows[kind, 5]["median_nights"] <= 5
        assert rows[kind, 8]["seen_in_30"] == 1.0
        assert rows[kind, 8]["taken_back_in_60"] == 0.0


def test_the_window_is_that_of_the_cycle(benchmark: ModuleType) -> None:
    series = import_module("collector.series")
    assert series.BASELINE_KEPT + benchmark.RULE.window == benchmark.READ
