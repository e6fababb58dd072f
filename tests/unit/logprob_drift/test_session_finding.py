from __future__ import annotations

import numpy as np

from logprob_drift.alarms.session_scores import Fingerprint, judge_relative
from logprob_drift.findings import Basis
from logprob_drift.session_finding import session_finding
from ringtrue.records import Cause, Finding, Party, State
from ringtrue.verdict import state_of

HONEST = Fingerprint(median=-7.0, threshold=-4.6)


def finding(
    scores: np.ndarray,
    honest: Fingerprint | None = HONEST,
    basis: Basis = Basis(),  # noqa: B008  # frozen
) -> Finding:
    night = judge_relative(scores, honest)
    bad = [f"key-{i}" for i in range(night.bad)]
    return session_finding("acme", night, honest, asked=len(scores), share=0.05, bad=bad, basis=basis)


def scores(good: int, bad: int = 0, missing: int = 0) -> np.ndarray:
    return np.array([-7.0] * good + [-1.0] * bad + [np.nan] * missing)


def test_a_mixture_names_its_share_with_an_interval_and_the_provider() -> None:
    found = finding(scores(110, 15))
    assert found.message.startswith("15 of 125 sessions (12 %, 95 % interval 7.4 to 19 %)")
    assert (found.party, found.cause, found.value) == (Party.PROVIDER, Cause.MIXTURE, 0.12)
    assert found.evidence["sessions"] == [f"key-{i}" for i in range(15)]


def test_at_most_sixteen_sessions_are_named() -> None:
    assert len(finding(scores(60, 40)).evidence["sessions"]) == 16


def test_one_or_two_bad_sessions_are_no_mixture_and_are_told() -> None:
    assert finding(scores(124, 1)).message.startswith("1 of 125 sessions stands out")
    found = finding(scores(123, 2))
    assert found.message.startswith("2 of 125 sessions stand out")
    assert state_of(found) is State.OK


def test_few_sessions_say_what_they_could_have_shown() -> None:
    found = finding(scores(50))
    assert state_of(found) is State.UNKNOWN
    assert "only one of 12 %" in found.message
    assert "no share" in finding(scores(2)).message


def test_without_measured_or_honest_sessions_the_reason_is_stated() -> None:
    assert finding(scores(0, missing=7)).message == "none of 7 sessions could be compared"
    assert "at least 100" in finding(scores(125), honest=None).message


def test_what_was_left_out_ends_the_sentence() -> None:
    basis = Basis(withheld=3, counted=True, unusable={"not comparable": 2})
    found = finding(scores(110, 15), basis=basis)
    assert found.message.endswith(
        "; 3 answers withheld, their token IDs differ; answers left out: 2 not comparable; "
        "token IDs taken as equal because their counts are"
    )
    assert found.alternatives == (Cause.PROMPT,)
