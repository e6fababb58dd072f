"""Did the endpoint answer? Failed requests and retries are observations, never discarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ringtrue.records import Cause, Check, Exchange, Failure, FailureKind, Finding, Interval, Party, Severity
from ringtrue.stats import wilson

TOLERATED = 0.01  # share of requests whose first attempt may fail
LEVEL = 0.99
# Not asked, or stopped by us: says nothing about the endpoint.
_OURS = frozenset({FailureKind.BUDGET, FailureKind.CANCELLED})


def first_failure(exchange: Exchange) -> Failure | None:
    """Return why the first attempt failed, also when a retry then succeeded."""
    if exchange.attempts:
        return exchange.attempts[0].failure
    return exchange.error


def asked(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges that really reached for the endpoint.

    What it does not offer is found out by asking: such a refusal is no failure
    of an endpoint that answers what it does offer.
    """
    ours = _OURS
    if any(exchange.error is None for exchange in exchanges):
        ours = ours | {FailureKind.CAPABILITY_REFUSED}
    return [e for e in exchanges if e.error is None or e.error.kind not in ours]


def judge(endpoint: str, exchanges: Sequence[Exchange]) -> Finding:
    """Return the finding for the check ``wire``: the share of first attempts that failed.

    No answer at all is UNKNOWN with the reason, and so is a request that the
    caller has to mend. Otherwise the 99 % Wilson interval decides: WORSE when
    its lower limit is above `TOLERATED`.
    """
    sent = asked(exchanges)
    if not sent:
        return unmeasured(endpoint, Check.WIRE, "no request was sent", Party.CALLER)
    failures = [failure for e in sent if (failure := first_failure(e)) is not None]
    answered = sum(e.error is None for e in sent)
    interval = wilson(len(failures), len(sent), LEVEL)
    if answered == 0:
        return unmeasured_because(endpoint, Check.WIRE, failures[0], n=len(sent))
    low = interval.low if interval is not None else None
    worse = low is not None and low > TOLERATED
    words = f"{len(sent) - len(failures)} of {len(sent)} requests were answered at the first attempt"
    if failures:
        words += f" ({_counted(failures)}); {answered} in the end"
    words += _other_names(sent)
    return Finding(
        endpoint=endpoint,
        check=Check.WIRE,
        code="wire.failures" if worse else "wire.answered",
        severity=Severity.FAIL if worse else Severity.INFO,
        party=failures[0].party if failures else Party.UNKNOWN,
        cause=Cause.CALLER if failures and failures[0].party is Party.CALLER else Cause.UNKNOWN,
        message=words,
        effect=len(failures) / len(sent),
        value=len(failures) / len(sent),
        metric="first_attempt_failure_rate",
        unit="share",
        interval=interval,
        n=len(sent),
        detectable_effect=_detectable(len(sent)),
    )


def unmeasured_because(endpoint: str, check: Check, failure: Failure, *, n: int = 0) -> Finding:
    """Return an UNKNOWN for ``check`` whose reason is what went wrong on the wire."""
    return unmeasured(endpoint, check, failure.message, failure.party, n=n)


def unmeasured(endpoint: str, check: Check, reason: str, party: Party, *, n: int = 0) -> Finding:
    """Return an UNKNOWN for ``check``; the cause is ``caller`` where it is the caller who can mend it."""
    return Finding(
        endpoint=endpoint,
        check=check,
        code=f"{check}.unmeasured",
        severity=Severity.INFO,
        party=party,
        cause=Cause.CALLER if party is Party.CALLER else Cause.UNKNOWN,
        message=reason,
        n=n,
        measured=False,
    )


def _other_names(exchanges: Sequence[Exchange]) -> str:
    """Say so where answers carry another model's name. It may be an alias, so it is no fault by itself."""
    names = {e.model for e in exchanges if e.model and e.requested_model and e.model != e.requested_model}
    return f"; the answers name the model {', '.join(sorted(names))}" if names else ""


def _counted(failures: Sequence[Failure]) -> str:
    counts = Counter(failure.kind.replace("_", " ") for failure in failures)
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())


def _detectable(sent: int) -> float | None:
    """Return the smallest failure rate that ``sent`` requests would have shown as WORSE."""
    for failed in range(1, sent + 1):
        interval: Interval | None = wilson(failed, sent, LEVEL)
        if interval is not None and interval.low is not None and interval.low > TOLERATED:
            return failed / sent
    return None
