"""Series of shares, judged by clustered Bernoulli evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evals.replay.alarm import alarm_of
from evals.replay.outcomes import Outcome, Quiet, Unknown
from evals.replay.watched import Shares
from logprob_drift.alarms.night_detector import Rule
from ringtrue.rate_change import CORRELATION_FLOOR, RateChanges, detectable_rate, rate_changes


def judge_shares(series: Sequence[Shares], detector: str, rule: Rule) -> list[Outcome]:
    """Hold the shares of all series against their past at once: clustered Bernoulli evidence."""
    if not series:
        return []
    nights = max(len(shares.batches) for shares in series)
    hits, trials = np.zeros((len(series), nights)), np.zeros((len(series), nights))
    for at, shares in enumerate(series):
        hits[at, : len(shares.batches)] = shares.hits
        trials[at, : len(shares.batches)] = shares.requests
    found = rate_changes(hits, trials, rule.threshold, baseline=rule.baseline, window=rule.window)
    return [_share_outcome(shares, at, detector, found, rule) for at, shares in enumerate(series)]


def _share_outcome(shares: Shares, at: int, detector: str, found: RateChanges, rule: Rule) -> Outcome:
    count = len(shares.batches)
    if count <= rule.baseline:
        reason = f"{count} of {rule.baseline + 1} nights measured"
        return Unknown(shares.endpoint, detector, shares.series, reason)
    night, since = int(found.first[at]), int(found.since[at])
    if night < 0:
        return _quiet_share(shares, detector, float(np.nanmax(found.evidence[at])), rule)
    evidence = {
        "unit": "share of requests",
        "rate_before": float(found.before[at, night]),
        "rate_after": float(found.after[at, night]),
        "requests_before": sum(shares.requests[:since]),
        "e_value_without_the_most_extreme_batch": float(found.guarded[at, night]),
        "threshold": rule.threshold,
    }
    return alarm_of(shares, detector, since, night, float(found.evidence[at, night]), evidence)


def _quiet_share(shares: Shares, detector: str, e_value: float, rule: Rule) -> Quiet:
    """State the shift that the last batches of the window would have shown, at the least correlation."""
    after = min(rule.window, len(shares.batches) - rule.baseline)
    before = len(shares.batches) - after
    trials, later = sum(shares.requests[:before]), sum(shares.requests[before:])
    rate = float(shares.hits.sum()) / max(trials + later, 1)
    usual = float(np.median(shares.requests))
    effect = 1 + max(usual - 1, 0) * CORRELATION_FLOOR
    shifts = [  # upwards, and downwards by counting what did not happen
        seen - one
        for one in (rate, 1 - rate)
        if (seen := detectable_rate(one, trials, later, rule.threshold, design_effect=effect)) is not None
    ]
    shift = min(shifts, default=None)
    return Quiet(
        shares.endpoint, detector, shares.series, len(shares.batches), e_value, shift, "share of requests"
    )
