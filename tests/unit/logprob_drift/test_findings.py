import numpy as np
import pytest

from logprob_drift.context_curve import Curve, Row, trace
from logprob_drift.findings import Basis, judge
from logprob_drift.sessions import sessions_alike
from ringtrue.records import Cause, Check, Finding, Party, Severity

COUNTS = {32: 64, 128: 24, 512: 16, 2048: 4}
OWN = Basis()


def curve(factor: dict[int, float] | float = 1.0, counts: dict[int, int] = COUNTS) -> Curve:
    generator = np.random.default_rng(4)

    def times(length: int) -> float:
        return factor if isinstance(factor, float) else factor.get(length, 1.0)

    made = [
        Row(length, float(f * times(length) * generator.lognormal(0, 0.2)), float(f))
        for length, count in counts.items()
        for f in generator.lognormal(np.log(0.0012), 0.9, count)
    ]
    return trace(made, list(counts), np.random.default_rng(0))


def judged(of: Curve, basis: Basis = OWN, *, alike: bool | None = True) -> dict[Check, Finding]:
    return {finding.check: finding for finding in judge("acme", of, basis, sessions_alike=alike)}


def test_an_honest_endpoint_is_fine_in_both_checks() -> None:
    findings = judged(curve())

    assert {f.severity for f in findings.values()} == {Severity.INFO}
    assert all(f.measured for f in findings.values())
    assert "up to 2,048 tokens" in findings[Check.CONTEXT].message


def test_a_divergence_at_every_length_is_numerics_and_no_context_fault() -> None:
    findings = judged(curve(300.0))

    assert findings[Check.LOGPROBS].severity is Severity.FAIL
    assert findings[Check.LOGPROBS].cause is Cause.NUMERICS
    assert findings[Check.LOGPROBS].alternatives == (Cause.IDENTITY,)
    assert findings[Check.CONTEXT].severity is Severity.INFO


def test_a_small_shift_at_every_length_is_a_change_and_not_worse() -> None:
    finding = judged(curve(3.0))[Check.LOGPROBS]

    assert (finding.severity, finding.party) == (Severity.WARN, Party.PROVIDER)
    assert "beyond 1.5x the floor" in finding.message


def test_a_divergence_beyond_a_length_is_a_context_fault_with_its_onset() -> None:
    findings = judged(curve({2048: 3000.0}))

    assert findings[Check.LOGPROBS].severity is Severity.INFO
    assert "below 2,048 tokens" in findings[Check.LOGPROBS].message
    assert findings[Check.CONTEXT].cause is Cause.CONTEXT
    assert findings[Check.CONTEXT].onset == 2048
    assert findings[Check.CONTEXT].severity is Severity.FAIL


def test_sessions_that_disagree_make_it_a_mixture() -> None:
    assert judged(curve(300.0), alike=False)[Check.LOGPROBS].cause is Cause.MIXTURE


def test_sessions_that_were_not_compared_leave_a_mixture_possible() -> None:
    assert Cause.MIXTURE in judged(curve(300.0), alike=None)[Check.LOGPROBS].alternatives


def test_a_fault_at_one_middle_length_only_is_not_hidden_by_the_pool() -> None:
    finding = judged(curve({128: 8.0}))[Check.LOGPROBS]

    assert finding.severity is not Severity.INFO
    assert Cause.CONTEXT in finding.alternatives


def test_too_few_prompts_are_unmeasured_and_say_how_many_more() -> None:
    findings = judged(curve(counts={32: 20}))

    assert not findings[Check.LOGPROBS].measured
    assert "only 20 prompts could be compared and 64 are needed: 44 more" in findings[Check.LOGPROBS].message
    assert not findings[Check.CONTEXT].measured
    assert "probe at least two" in findings[Check.CONTEXT].message


def test_a_length_with_too_few_prompts_leaves_the_context_unknown() -> None:
    finding = judged(curve(counts={32: 64, 2048: 2}))[Check.CONTEXT]

    assert not finding.measured
    assert "2 more at 2,048" in finding.message


def test_a_comparison_on_the_servers_own_ids_says_so() -> None:
    findings = judged(curve(counts={32: 64}), Basis(withheld=44, own_ids=True))

    assert "on the server's own token IDs, 44 prompts withheld" in findings[Check.LOGPROBS].message
    assert findings[Check.CONTEXT].message == "not compared: the token IDs differ (see tokens)"


def test_ids_known_from_counts_alone_leave_the_prompt_possible() -> None:
    finding = judged(curve(300.0), Basis(counted=True))[Check.LOGPROBS]

    assert finding.cause is Cause.NUMERICS
    assert finding.alternatives[0] is Cause.PROMPT
    assert "because their counts are" in finding.message


def test_rows_left_out_are_counted_in_the_reason() -> None:
    assert "2 sum above one" in judged(curve(), Basis(unusable={"sum_above_one": 2}))[Check.LOGPROBS].message


@pytest.mark.parametrize(("bad_sessions", "alike"), [(range(8), True), (range(3), False), (range(0), None)])
def test_sessions_are_alike_when_all_or_none_show_the_fault(bad_sessions: range, alike: bool | None) -> None:
    made = [
        Row(32, 0.8 if session in bad_sessions else 0.001, 0.001, session=f"s{session}")
        for session in range(8)
        for _ in range(8)
    ]

    assert sessions_alike(made, gross=0.05) is alike


def test_a_session_that_is_neither_clean_nor_gross_leaves_it_open() -> None:
    made = [
        Row(32, d, 0.001, session=s) for s, d in (("a", 0.8), ("b", 0.001), ("c", 0.01)) for _ in range(8)
    ]

    assert sessions_alike(made, gross=0.05) is None


def test_an_honest_session_on_the_high_side_does_not_hide_a_mixture() -> None:
    made = [
        Row(32, d, 0.001, session=s)
        for s, d in (("a", 0.8), ("b", 0.0019), ("c", 0.0008), ("d", 0.001))
        for _ in range(8)
    ]

    assert sessions_alike(made, gross=0.05) is False


def test_sessions_of_too_few_prompts_say_nothing() -> None:
    assert sessions_alike([Row(32, 0.8, 0.001, session=f"s{i}") for i in range(9)], gross=0.05) is None
