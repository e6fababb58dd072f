from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ringtrue.records import DRIFT, Cause, Check, Finding, Interval, Party, Severity, State, Verdict
from ringtrue.verdict import conclude, loudest

NIGHT = datetime(2026, 3, 1, 2, tzinfo=UTC)


def finding(
    severity: Severity = Severity.INFO,
    check: Check = Check.LOGPROBS,
    cause: Cause = Cause.NUMERICS,
    *,
    message: str = "m",
    measured: bool = True,
) -> Finding:
    return Finding(
        endpoint="acme",
        check=check,
        code="c",
        severity=severity,
        party=Party.PROVIDER,
        cause=cause,
        message=message,
        alternatives=(Cause.IDENTITY,),
        value=0.5,
        unit="nats",
        interval=Interval(0.4, 0.6, 0.98),
        n=64,
        detectable_effect=0.01,
        onset=2048,
        metric="kl",
        measured=measured,
    )


def verdicts_of(
    *findings: Finding, previous: dict[tuple[str, Check], Verdict] | None = None
) -> tuple[Verdict, ...]:
    return conclude("acme", "m-1", findings, previous=previous or {}, run="r1", at=NIGHT)


@pytest.mark.parametrize(
    ("severity", "measured", "state"),
    [
        (Severity.INFO, True, State.OK),
        (Severity.WARN, True, State.CHANGED),
        (Severity.FAIL, True, State.WORSE),
        (Severity.INFO, False, State.UNKNOWN),
        (Severity.FAIL, False, State.UNKNOWN),
    ],
)
def test_severity_becomes_a_state_and_the_unmeasured_is_unknown(
    severity: Severity, measured: bool, state: State
) -> None:
    (verdict,) = verdicts_of(finding(severity, measured=measured))

    assert verdict.verdict is state


def test_a_check_without_findings_gets_no_verdict() -> None:
    assert verdicts_of() == ()
    assert [v.check for v in verdicts_of(finding(check=Check.WIRE))] == [Check.WIRE]


def test_the_loudest_finding_of_a_check_speaks_for_it() -> None:
    (verdict,) = verdicts_of(
        finding(message="fine"),
        finding(measured=False, message="unseen"),
        finding(Severity.WARN, message="loud"),
    )

    assert (verdict.verdict, verdict.reason) == (State.CHANGED, "loud")


def test_unknown_is_louder_than_ok() -> None:
    (verdict,) = verdicts_of(finding(message="fine"), finding(measured=False, message="unseen"))

    assert verdict.verdict is State.UNKNOWN


def test_among_equals_the_first_finding_speaks() -> None:
    (verdict,) = verdicts_of(
        finding(Severity.FAIL, message="upstream"), finding(Severity.FAIL, message="downstream")
    )

    assert verdict.reason == "upstream"


def test_what_is_fine_blames_nobody() -> None:
    (verdict,) = verdicts_of(finding())

    assert verdict.cause is None
    assert verdict.alternatives == ()


def test_a_verdict_carries_the_numbers_of_its_finding() -> None:
    (verdict,) = verdicts_of(finding(Severity.FAIL))

    assert verdict.cause is Cause.NUMERICS
    assert verdict.alternatives == (Cause.IDENTITY,)
    assert (verdict.metric, verdict.value, verdict.unit) == ("kl", 0.5, "nats")
    assert verdict.interval == Interval(0.4, 0.6, 0.98)
    assert (verdict.n, verdict.detectable_effect, verdict.onset) == (64, 0.01, 2048)


def test_since_is_kept_while_state_and_cause_stay() -> None:
    (before,) = verdicts_of(finding(Severity.FAIL))
    later = NIGHT + timedelta(days=1)

    (same,) = conclude(
        "acme",
        "m-1",
        [finding(Severity.FAIL)],
        previous={("acme", Check.LOGPROBS): before},
        run="r2",
        at=later,
    )
    (other,) = conclude(
        "acme",
        "m-1",
        [finding(Severity.FAIL, cause=Cause.MIXTURE)],
        previous={("acme", Check.LOGPROBS): before},
        run="r2",
        at=later,
    )

    assert same.since == NIGHT
    assert other.since == later


def test_nothing_has_no_loudest_state() -> None:
    assert loudest(()) is None


def test_faults_are_what_is_changed_or_worse() -> None:
    verdicts = verdicts_of(
        finding(Severity.FAIL), finding(check=Check.TOKENS), finding(check=Check.WIRE, measured=False)
    )

    assert loudest(verdicts) is State.WORSE
    assert [(v.verdict, v.cause) for v in verdicts if v.verdict in DRIFT] == [(State.WORSE, Cause.NUMERICS)]


def test_a_finding_that_knows_since_when_goes_before_the_verdicts_of_the_past() -> None:
    known = replace(finding(Severity.WARN), since=NIGHT - timedelta(days=3))
    (before,) = verdicts_of(finding(Severity.WARN))
    (verdict,) = verdicts_of(known, previous={("acme", Check.LOGPROBS): before})
    assert verdict.since == NIGHT - timedelta(days=3)
