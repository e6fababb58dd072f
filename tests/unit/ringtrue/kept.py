"""What the tests of the store share: a clock that is set by hand, and one record of each kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ringtrue.alarm import Alarm
from ringtrue.records import Cause, Check, Finding, Interval, Observation, Party, Severity, State, Verdict

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TTL = timedelta(minutes=2)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


OBSERVED = Observation("acme", "context_curve", "kl", 0.25, "nats", 16, NOON, "r1", context_length=512)
FOUND = Finding(
    "acme",
    Check.CONTEXT,
    "onset",
    Severity.FAIL,
    Party.PROVIDER,
    Cause.CONTEXT,
    "differs from 512 tokens on",
    alternatives=(Cause.NUMERICS,),
    effect=0.2,
    interval=Interval(0.1, None, 0.99),
    n=16,
    onset=512,
    evidence={"ids": (1, 2, 3)},
)
WORSE = Verdict(
    "acme",
    "smollm2-135m",
    Check.CONTEXT,
    State.WORSE,
    "differs from 512 tokens on",
    "r1",
    cause=Cause.CONTEXT,
    alternatives=(Cause.NUMERICS, Cause.MIXTURE),
    since=NOON,
    metric="kl",
    value=0.25,
    unit="nats",
    interval=Interval(0.1, 0.4, 0.99),
    n=16,
    detectable_effect=0.01,
    onset=512,
)
RAISED = Alarm("r1", "acme", Check.LOGPROBS, "kl_mean@32", NOON, NOON, 900.0, 730.0, 2.4, 0.1)
FINE = Verdict("acme", "smollm2-135m", Check.LOGPROBS, State.OK, "as the reference", "r1")
