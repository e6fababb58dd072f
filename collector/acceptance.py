"""A change that somebody accepts: the alarm is closed, and its nights become the new baseline."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from collector.lease import NAME, TTL
from collector.streams.statement import code_of
from evals.availability import unmeasured
from ringtrue.alarm import Alarm
from ringtrue.errors import UsageError
from ringtrue.records import Check, Party, Verdict
from ringtrue.store import Store
from ringtrue.verdict import conclude


def accept(
    store: Store, endpoint: str, check: Check, *, by: str, why: str, at: datetime
) -> tuple[tuple[Alarm, ...], Verdict]:
    """Accept what stands against an endpoint and return it, with the verdict that holds now.

    That verdict is what the rule of one night made of the newest run; its
    *since* is that run's start. The lease of the cycle is held meanwhile.

    Raises:
        UsageError: No alarm stands there, or name or reason is empty.
        LeaseHeldError: A cycle is running.
        StoreError: The store refused; nothing is accepted.
    """
    if not by.strip() or not why.strip():
        raise UsageError("is empty", where="--by and --why", remedy="Say who accepts the change, and why")
    holder = f"verdicts accept by {by}"
    store.acquire_lease(NAME, holder, TTL)
    try:
        standing = [alarm for alarm in store.alarms(endpoint, check) if alarm.closed is None]
        if not standing:
            raise UsageError(
                "no alarm of a series stands here, so there is nothing to accept",
                where=f"{endpoint} {check.value}",
                remedy="What differs from the reference in one night can't be accepted",
            )
        accepted = tuple(replace(alarm, closed=at, by=by, why=why) for alarm in standing)
        verdict = _without_series(store, endpoint, check)
        store.conclude(verdict.run, (), (verdict,), accepted)
    finally:
        store.release_lease(NAME, holder)
    return accepted, verdict


def _without_series(store: Store, endpoint: str, check: Check) -> Verdict:
    """Return the verdict of the newest examination as it is without its series."""
    (now,) = (verdict for verdict in store.current_verdicts(endpoint) if verdict.check is check)
    findings = [
        finding
        for finding in store.findings(now.run)
        if finding.endpoint == endpoint and finding.check is check and finding.code != code_of(check)
    ]
    if not findings:
        # Only the series spoke of it: without them nothing is known until the next night.
        reason = "its change was accepted: the next night begins the new baseline"
        findings = [unmeasured(endpoint, check, reason, Party.UNKNOWN)]
    (started,) = (run.started for run in store.runs() if run.id == now.run)
    (verdict,) = conclude(endpoint, now.model, findings, previous={}, run=now.run, at=started)
    return verdict
