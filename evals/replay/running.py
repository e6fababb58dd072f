"""One replay: read, make the series, share the budget among them, judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from evals.replay.batches import EndpointSeries
from evals.replay.detectors import DETECTORS, Detector, Setting
from evals.replay.notes import notes_on
from evals.replay.outcomes import Alarm, Outcome, Quiet, Replay, Unknown
from evals.replay.reading import Recording, read_recording
from logprob_drift.alarms.night_detector import Rule
from ringtrue.e_values import NIGHTS_A_YEAR, alarm_threshold
from ringtrue.errors import UsageError
from ringtrue.progress import ProgressReport

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What to replay.

    ``streams`` is the number of series that share the budget of ``per_year``
    false alarms; ``None``: those of this replay. ``detectors`` is empty for
    all that apply; ``logged`` names metrics to be read on the log scale.
    """

    paths: tuple[Path, ...]
    detectors: tuple[str, ...] = ()
    streams: int | None = None
    per_year: float = 1.0
    baseline: int = 14
    logged: frozenset[str] = frozenset()
    seed: int = 0


def run_replay(plan: ReplayPlan, progress: ProgressReport) -> Replay:
    """Return when each detector would have alarmed.

    A series is watched up to its first alarm: what comes after would have
    been watched against a baseline that somebody accepted.

    Raises:
        UsageError: a detector is not known, a file can't be read, or the
            budget asks for no evidence at all.
        MeasureError: no line can be used.
    """
    chosen = _chosen(plan.detectors)
    recording = read_recording(plan.paths, progress, np.random.default_rng(plan.seed))
    endpoints = [recording.endpoints[name] for name in sorted(recording.endpoints)]
    setting = Setting(plan.baseline, plan.logged)
    watched = {
        name: [series for endpoint in endpoints for series in detector.series(endpoint, setting)]
        for name, detector in chosen.items()
    }
    sharing = sum(len(series) for name, series in watched.items() if chosen[name].alarms)
    streams = plan.streams or max(1, sharing)
    a_year = batches_a_year(endpoints)
    threshold = alarm_threshold(streams, per_year=plan.per_year) * a_year / NIGHTS_A_YEAR
    if threshold <= 1:
        raise UsageError(
            f"{plan.per_year:g} false alarms a year are more than {streams} series can be asked for",
            where="--false-alarms-per-year",
            remedy="Tolerate fewer, or name the size of the fleet with --streams",
        )
    rule = Rule(threshold, baseline=plan.baseline)
    outcomes = {name: chosen[name].judge(series, name, rule) for name, series in watched.items()}
    return _replay(plan, recording, chosen, outcomes, (rule.threshold, streams, a_year))


def batches_a_year(endpoints: Sequence[EndpointSeries]) -> float:
    """Return how many batches a year holds, by the usual time between two; at least 365.

    The budget is one of time: hourly batches have to share it among more.
    """
    pairs = (pair for series in endpoints for pair in pairwise(series.in_time()))
    gaps = [two.at - one.at for one, two in pairs if two.at > one.at]
    return max(1.0, _DAY / float(np.median(gaps))) * NIGHTS_A_YEAR if gaps else float(NIGHTS_A_YEAR)


def _chosen(names: tuple[str, ...]) -> dict[str, Detector]:
    for name in names:
        if name not in DETECTORS:
            raise UsageError(
                f"no detector is called {name}",
                where="--detector",
                remedy=f"There are {', '.join(DETECTORS)}",
            )
    return {name: detector for name, detector in DETECTORS.items() if not names or name in names}


def _replay(
    plan: ReplayPlan,
    recording: Recording,
    chosen: dict[str, Detector],
    outcomes: dict[str, list[Outcome]],
    budget: tuple[float, int, float],
) -> Replay:
    def of(kind: type[Any], *, alarming: bool | None = None) -> list[Any]:
        return [
            outcome
            for name, found in outcomes.items()
            for outcome in found
            if isinstance(outcome, kind) and alarming in {None, chosen[name].alarms}
        ]

    alarms: list[Alarm] = sorted(of(Alarm, alarming=True), key=lambda alarm: (alarm.at, alarm.endpoint))
    notices: list[Alarm] = sorted(of(Alarm, alarming=False), key=lambda alarm: (alarm.at, alarm.endpoint))
    quiet: list[Quiet] = of(Quiet)
    unknown: list[Unknown] = of(Unknown)
    threshold, streams, a_year = budget
    return Replay(
        alarms=tuple(alarms),
        notices=tuple(notices),
        quiet=tuple(quiet),
        unknown=tuple(unknown),
        notes=notes_on(recording),
        detectors=tuple(name for name, found in outcomes.items() if found),
        threshold=threshold,
        streams=streams,
        per_year=plan.per_year,
        batches_a_year=a_year,
        lines={
            "used": recording.lines - recording.repeated,
            "bad": recording.bad,
            "repeated": recording.repeated,
        },
    )
