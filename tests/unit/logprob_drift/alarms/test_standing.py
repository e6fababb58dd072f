from __future__ import annotations

import numpy as np
import pytest

from logprob_drift.alarms.metric import Metric, Scale
from logprob_drift.alarms.standing import BACK_NIGHTS, Baseline, baseline_of, is_back

LINEAR = Metric(1e-3)
LOG = Metric(1e-4, Scale.LOG, "nats")


def test_a_baseline_is_mean_and_sd_on_the_metrics_scale() -> None:
    found = baseline_of(np.array([0.001, 0.002]), LOG)
    logs = np.log1p(np.array([10.0, 20.0]))
    assert found == Baseline(pytest.approx(logs.mean()), pytest.approx(logs.std(ddof=1)))
    assert LOG.in_unit(float(LOG.scaled(np.array([0.0015]))[0])) == pytest.approx(0.0015)


def test_no_spread_is_below_the_resolution() -> None:
    assert baseline_of(np.full(20, 0.5), LINEAR) == Baseline(0.5, 1e-3)
    assert baseline_of(np.full(20, 0.0009), LOG).spread == pytest.approx(0.1)
    with pytest.raises(ValueError, match="1 nights show no spread"):
        baseline_of(np.array([0.1]), LINEAR)


def test_fewer_than_the_deciding_nights_are_never_back() -> None:
    baseline = Baseline(0.0, 1.0)
    assert not is_back(np.zeros(BACK_NIGHTS - 1), baseline, LINEAR)
    assert is_back(np.r_[9.0, np.zeros(BACK_NIGHTS)], baseline, LINEAR)


@pytest.mark.parametrize(
    ("shift", "low", "high"), [(0.0, 0.96, 0.99), (2.0, 0.008, 0.018), (3.0, 0.0, 0.0002)]
)
def test_how_often_a_stream_seems_back(shift: float, low: float, high: float) -> None:
    nights = shift + np.random.default_rng(5).standard_normal((20_000, BACK_NIGHTS))
    share = np.mean([is_back(one, Baseline(0.0, 1.0), LINEAR) for one in nights])
    assert low <= share <= high
