"""Series of numbers, judged by the night detector."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from evals.replay.alarm import alarm_of
from evals.replay.outcomes import Outcome, Quiet, Unknown
from evals.replay.watched import Stream
from logprob_drift.alarms.metric import Metric
from logprob_drift.alarms.night_detector import Alarms, Rule, detect


def judge_numbers(streams: Sequence[Stream], detector: str, rule: Rule) -> list[Outcome]:
    """Run the night detector over all streams, those of one metric at once."""
    grouped: defaultdict[Metric, list[Stream]] = defaultdict(list)
    for stream in streams:
        if not stream.unknown:
            grouped[stream.metric].append(stream)
    outcomes: list[Outcome] = [
        Unknown(s.endpoint, detector, s.series, s.unknown) for s in streams if s.unknown
    ]
    for metric, group in grouped.items():
        values = np.full((len(group), max(stream.values.size for stream in group)), np.nan)
        for row, stream in zip(values, group, strict=True):
            row[: stream.values.size] = stream.values
        found = detect(values, metric, rule)
        outcomes += [_number_outcome(s, at, detector, found) for at, s in enumerate(group)]
    return outcomes


def _number_outcome(stream: Stream, at: int, detector: str, found: Alarms) -> Outcome:
    night, since = int(found.first[at]), int(found.since[at])
    last = stream.values.size - 1
    judged = ~np.isnan(found.evidence[at, : last + 1])
    if not judged.any():
        reason = found.unknown(at, last) or "nothing was measured"
        return Unknown(stream.endpoint, detector, stream.series, reason)
    if night < 0:
        detectable = float(found.detectable[at, int(np.flatnonzero(judged)[-1])])
        return Quiet(
            endpoint=stream.endpoint,
            detector=detector,
            series=stream.series,
            batches=last + 1,
            e_value=float(np.nanmax(found.evidence[at])),
            detectable=detectable if math.isfinite(detectable) else None,
            unit=stream.metric.unit,
        )
    before, after = stream.values[:since], stream.values[since : night + 1]
    evidence = {
        "unit": stream.metric.unit,
        "mean_before": float(np.nanmean(before)),
        "mean_after": float(np.nanmean(after)),
        "batches_before": int(np.isfinite(before).sum()),
        "batches_after": int(np.isfinite(after).sum()),
        "e_value_without_the_most_extreme_batch": float(found.guarded[at, night]),
        "threshold": found.rule.threshold,
    }
    e_value = float(found.evidence[at, night])
    return alarm_of(stream, detector, since, night, e_value, evidence)
