"""The alarm of one series."""

from __future__ import annotations

from collections.abc import Mapping

from evals.replay.outcomes import Alarm
from evals.replay.watched import Watched


def alarm_of(
    watched: Watched, detector: str, since: int, night: int, e_value: float, evidence: Mapping[str, object]
) -> Alarm:
    """Return the alarm of a series at one of its batches, changed since another (indices)."""
    return Alarm(
        endpoint=watched.endpoint,
        detector=detector,
        at=watched.batches[night].last,
        batch=watched.batches[night].key,
        requests=sum(watched.requests[since : night + 1]),
        e_value=e_value,
        since=watched.batches[since].key,
        evidence={"series": watched.series, **evidence},
    )
