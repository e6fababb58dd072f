"""A small version of the benchmark of counts and e-values as the cycle reads them."""

from importlib import import_module
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend("benchmarks")
    return import_module("counts_in_the_cycle")


def test_honest_fleets_of_every_kind_keep_the_budget(benchmark: ModuleType) -> None:
    rows = benchmark.honest_years(years=1, streams=10)
    assert len(rows) == 10
    assert all(row["alarms"] == 0 for row in rows)


def test_a_stream_that_changes_alarms_in_the_same_simulation(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changes(trials: int, rate: float, _: float) -> object:
        return lambda rng, shape: (
            rng.binomial(trials, np.where(np.arange(shape[1]) < 200, rate, 0.5), shape) / trials
        )

    monkeypatch.setattr(benchmark, "counts", changes)
    assert benchmark.honest_shares(0.01, 0.0, np.random.default_rng(1), 3) == 3
    assert benchmark.honest_violations(0.001, 0.0, np.random.default_rng(1), 3) == 3


def test_every_lasting_change_is_seen_and_gross_ones_are_not_taken_back(benchmark: ModuleType) -> None:
    rows = benchmark.changes(streams=5)
    assert all(row["median_nights"] <= 25 for row in rows)
    gross = [row for row in rows if row["change"] in {"1 -> 20 %, corr. 0.02", "to 90 %, corr. 0.05", "2 %"}]
    assert len(gross) == 3
    assert all(row["taken_back_in_30"] == 0.0 and row["median_nights"] <= 5 for row in gross)
