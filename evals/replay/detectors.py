"""The detectors that a recorded series can be held against: what each needs, and how it is fed.

A new detector is one entry of `DETECTORS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.replay import metric_series, row_series, sample_series
from evals.replay.batches import EndpointSeries
from evals.replay.judging_numbers import judge_numbers
from evals.replay.judging_shares import judge_shares
from evals.replay.judging_states import judge_states
from evals.replay.outcomes import Outcome
from logprob_drift.alarms.night_detector import Rule


@dataclass(frozen=True, slots=True)
class Setting:
    """What all detectors are told: batches of the baseline, and metrics to read on the log scale."""

    baseline: int
    logged: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Detector:
    """How one detector takes its series from an endpoint, and how they are judged.

    ``needs`` is the content of a line that it reads. ``series`` returns what
    ``judge`` takes: any number of series. Series of a detector that ``alarms``
    share the budget of false alarms; the others give notices only.
    """

    needs: str
    watches: str
    series: Callable[[EndpointSeries, Setting], Iterable[Any]]
    judge: Callable[[Sequence[Any], str, Rule], list[Outcome]]
    alarms: bool = True


DETECTORS: Mapping[str, Detector] = {
    "distance": Detector(
        needs="top_logprobs",
        watches="the distance of logprobs from the endpoint's own baseline",
        series=lambda endpoint, setting: row_series.distances(endpoint, setting.baseline),
        judge=judge_numbers,
    ),
    "census": Detector(
        needs="top_logprobs",
        watches="which numeric states each prompt shows; gives notices, no alarms",
        series=lambda endpoint, _: row_series.states(endpoint),
        judge=judge_states,
        alarms=False,
    ),
    "length": Detector(
        needs="text",
        watches="the mean log length of answers",
        series=lambda endpoint, setting: metric_series.lengths(endpoint, setting.baseline),
        judge=judge_numbers,
    ),
    "samples": Detector(
        needs="text",
        watches="MMD^2 of answers against the baseline's",
        series=lambda endpoint, setting: sample_series.samples(endpoint, setting.baseline),
        judge=judge_numbers,
    ),
    "rates": Detector(
        needs="text or value",
        watches="shares of empty and looping answers, and metrics whose values are all 0 or 1",
        series=lambda endpoint, _: metric_series.rates(endpoint),
        judge=judge_shares,
    ),
    "value": Detector(
        needs="value",
        watches="the mean of each recorded metric",
        series=lambda endpoint, setting: metric_series.values_of(endpoint, setting.baseline, setting.logged),
        judge=judge_numbers,
    ),
}
