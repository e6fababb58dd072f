"""When did a nightly number change? Two-sample t, summed over candidate changes (docs/methods.md, "Alarms").

One number a night and stream. For every candidate change in the last 30
nights, the nights after it are held against those before it; the Bayes factors
are added up, and at A the stream alarms. A also has to be reached when the
most extreme night after the change is left out, so that no single night ever
alarms.

Assumes nights that are normal on the metric's scale and whose correlation
fades like that of an AR(1) process. Then a stream of independent nights alarms
at most once in A nights on average; what other streams do is simulated in
``benchmarks/fleet_years.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alarms.metric import Metric, Scale
from logprob_drift.alarms.night_evidence import Evidence, Rule
from ringtrue.alarm_nights import AlarmNights

__all__ = ["Alarms", "Metric", "Rule", "Scale", "detect"]

Values = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LARGEST = 1e100  # squares of more would overflow


@dataclass(frozen=True, slots=True)
class Alarms(AlarmNights):
    """What each night said of each stream; every array has shape [streams, nights].

    ``evidence`` is M and ``guarded`` M without the most extreme night; NaN on
    a night that is not judged. ``alarm`` stands from the first night on which
    both reach the threshold until the change is accepted (`detect`).
    ``start`` is the index of the night on which the likeliest change begins,
    -1 where not judged. ``detectable_sd`` and ``detectable`` (in the metric's
    unit) are the smallest lasting shift that, begun at the far end of the
    window, would be in alarm by this night in 9 of 10 cases; infinite while no
    shift would. ``observed`` counts the nights measured so far.
    """

    evidence: Values
    guarded: Values
    alarm: Flags
    start: Indices
    detectable_sd: Values
    detectable: Values
    observed: Indices
    rule: Rule

    def unknown(self, stream: int, night: int) -> str | None:
        """Return why this night can't be judged, as a sentence, or ``None`` where it is."""
        if not np.isnan(self.evidence[stream, night]):
            return None
        so_far, needed = int(self.observed[stream, night]), self.rule.baseline + 1
        if so_far < needed:
            return (
                f"{so_far} of {needed} nights measured: a change needs {self.rule.baseline} nights before it"
            )
        return "nothing was measured this night"


def detect(
    values: Values,
    metric: Metric,
    rule: Rule,
    *,
    nights: Sequence[int] | None = None,
    accepted: Indices | None = None,
) -> Alarms:
    """Return evidence and alarms of ``values``, [streams, nights]; NaN is a night without a measurement.

    Missing nights are skipped. A night's result depends on that night and
    those before it only, so that a longer series never changes the past.
    ``nights`` are the numbers of the nights. ``accepted``, [streams], is the
    index of the night from which on a stream's values count: 0 at first, and
    once somebody accepts a change, its ``since``. Nothing else restarts a
    stream: until then an alarm stands.

    Raises:
        ValueError: a value is infinite or beyond 1e100, or negative on the log scale; a night comes
            twice or out of order.
    """
    _require(values, metric, nights)
    kept = values
    if accepted is not None:
        kept = np.where(np.arange(values.shape[1]) >= accepted[:, None], values, np.nan)
    measured = ~np.isnan(kept)
    order = np.argsort(~measured, axis=1, kind="stable")  # measured nights first, in order
    packed = np.take_along_axis(kept, order, axis=1)
    packed = np.where(np.isnan(packed), 0.0, packed)
    found = Evidence(metric.scaled(packed), metric, rule)
    return _unpacked(found, order, measured, rule)


def _require(values: Values, metric: Metric, nights: Sequence[int] | None) -> None:
    if bool((np.abs(values) > _LARGEST).any()):
        raise ValueError(f"a value is infinite or beyond {_LARGEST:g}")
    if metric.scale is Scale.LOG and bool((values < 0).any()):
        raise ValueError("a value is negative, and its metric is read on the log scale")
    if nights is None:
        return
    if len(nights) != values.shape[1]:
        raise ValueError(f"{len(nights)} nights named, {values.shape[1]} given")
    for before, night in pairwise(nights):
        if night == before:
            raise ValueError(f"night {night} comes twice")
        if night < before:
            raise ValueError(f"night {night} comes after night {before}")


def _unpacked(found: Evidence, order: Indices, measured: Flags, rule: Rule) -> Alarms:
    """Put each measured night back where it was."""
    observed = np.cumsum(measured, axis=1, dtype=np.int64)
    judged = measured & (observed > rule.baseline)

    def back(packed: Values) -> Values:
        out = np.full(packed.shape, np.nan)
        np.put_along_axis(out, order, packed, axis=1)
        return np.where(judged, out, np.nan)

    evidence, guarded = back(found.evidence), back(found.guarded)
    places = np.arange(order.shape[1]) - np.maximum(found.lag - 1, 0)
    start = back(np.take_along_axis(order, places, axis=1).astype(np.float64))
    reached = (np.nan_to_num(evidence) >= rule.threshold) & (np.nan_to_num(guarded) >= rule.threshold)
    in_sd, in_unit = found.detectable()
    return Alarms(
        evidence=evidence,
        guarded=guarded,
        alarm=np.logical_or.accumulate(reached, axis=1),
        start=np.where(judged, np.nan_to_num(start), -1).astype(np.int64),
        detectable_sd=back(in_sd),
        detectable=back(in_unit),
        observed=observed,
        rule=rule,
    )
