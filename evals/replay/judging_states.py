"""The census of numeric states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evals.replay.alarm import alarm_of
from evals.replay.outcomes import Outcome, Quiet, Unknown
from evals.replay.watched import States
from logprob_drift.alarms.census import NOTICE, census
from logprob_drift.alarms.night_detector import Rule

_NEVER_REPEAT = 0.5  # share of different states in the baseline, beyond which a census says nothing


def judge_states(series: Sequence[States], detector: str, rule: Rule) -> list[Outcome]:
    """Take the census of each prompt's states; what it reports is a notice, outside the budget of alarms."""
    return [_census_outcome(states, detector, rule.baseline) for states in series]


def _census_outcome(states: States, detector: str, baseline: int) -> Outcome:
    unknown = Unknown(states.endpoint, detector, states.series, "")
    if len(states.batches) <= baseline:
        return replace(unknown, reason=f"{len(states.batches)} of {baseline + 1} batches measured")
    sizes = [len(held) for held in states.held]
    first = sum(sizes[:baseline])
    requests = [state for held in states.held for state in held]
    if len(set(requests[:first])) > first * _NEVER_REPEAT:
        return replace(unknown, reason="states never repeat: this endpoint's numbers depend on its batches")
    found = census(requests[:first], requests[first:])
    if found is None:
        return replace(unknown, reason=f"only {first} requests in {baseline} batches")
    if found.noticed is None or found.since is None:
        largest = float(found.e_values.max())
        return Quiet(states.endpoint, detector, states.series, len(states.batches), largest, None, "")
    ends = np.cumsum(sizes)
    places = np.searchsorted(ends, [first + found.noticed, first + found.since], side="right")
    night, since = int(places[0]), int(places[1])
    evidence = {
        "states_in_baseline": len(set(requests[:first])),
        "new_states": len(found.new),
        "requests_since_change": found.noticed - found.since + 1,
        "threshold": NOTICE,
    }
    e_value = float(found.e_values[found.noticed])
    return alarm_of(states, detector, since, night, e_value, evidence)
