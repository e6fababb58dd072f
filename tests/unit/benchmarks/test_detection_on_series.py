"""A small version of the benchmark that holds our detectors beside the published ones."""

from importlib import import_module
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend("benchmarks")
    return import_module("detection_on_series")


def test_correlated_requests_accuse_an_honest_endpoint_by_permutation_but_not_by_night(benchmark) -> None:
    found = benchmark.of_logprobs(np.random.default_rng(2), 0.3, 3.0, 4)
    honest = slice(benchmark.FIRST, benchmark.HONEST)

    assert np.mean([one["LT test"][1][honest] for one in found]) > 0.5
    assert not any(one["ringtrue"][1][: benchmark.HONEST].any() for one in found)
    assert all(one["ringtrue"][1][benchmark.HONEST :][:4].any() for one in found)


def test_another_model_at_a_tie_is_found_before_three_days_are_over(benchmark) -> None:
    rows = {
        (row.method, row.correlation): row
        for row in benchmark.rows_of("border inputs", 4, 1)
        if row.change == 0.9
    }

    for correlation in benchmark.CORRELATIONS:
        ours, daily = rows["ringtrue violations", correlation], rows["B3IT", correlation]
        assert ours.accused == 0
        assert ours.seen == 1
        assert ours.requests is not None
        assert daily.requests is not None
        assert ours.requests <= 20
        assert daily.requests >= 600


def test_honest_endpoints_do_not_alarm_within_their_first_nights(benchmark) -> None:
    assert benchmark.honest_year(0.3, streams=10, nights=60) == 0
