"""The benchmark of mixtures behind a real engine: its bounds, and its honest nights on drawn numbers."""

from importlib import import_module
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend("benchmarks")
    return import_module("mixture_engine")


def test_honest_nights_give_no_alarm_and_tell_how_far_a_bad_session_has_to_lie(
    benchmark: ModuleType,
) -> None:
    rng = np.random.default_rng(5)
    table = {name: rng.lognormal(-7, 0.4, (200, 4)).tolist() for name in ("a", "b")}
    found = benchmark.resampled(table, rng)
    assert (found["nights"], found["alarms"]) == (benchmark.RESAMPLED, 0)
    assert found["largest_honest"] < 10 <= found["times_the_usual"]


@pytest.mark.parametrize(
    ("share", "found", "holds"),
    [(0.0, 0, True), (0.0, 1, False), (0.16, 8, True), (0.16, 7, False), (0.05, 6, True), (0.05, 5, False)],
)
def test_the_bounds_allow_what_binomial_chance_does(
    benchmark: ModuleType, share: float, found: int, holds: bool
) -> None:
    pool = {"share": share, "nights": 8, "found": found}
    assert benchmark.holds({"pools": [pool], "honest": {"alarms": 0}}) is holds
    assert not benchmark.holds({"pools": [pool], "honest": {"alarms": 1}})
