"""The series of the examination's parts: each number's judge, the check it speaks for, and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pytest

from collector.acceptance import accept
from evals.parts.answers.findings import NO_BASELINE
from ringtrue.errors import UsageError
from ringtrue.records import Cause, Check, Finding, Party, Severity, State
from tests.unit.collector.nights import FEW, OTHER_IDS, RULE, SILENT, TOKENS, Nights, of_part

Draw = Callable[[np.random.Generator], float]
WAITING = replace(
    of_part(Check.OUTPUT, measured=False),
    code=NO_BASELINE,
    metric="answer_log_length",
    message="60 answers; no baseline yet: 14 more nights are needed",
)
FINE = (
    of_part(Check.SAMPLING),
    of_part(Check.IDENTITY),
    of_part(Check.SESSIONS),
    of_part(Check.TOOLCALLS),
    WAITING,
)
UNSEEN = replace(TOKENS, measured=False, message="nothing shows the token IDs")


@dataclass(frozen=True, slots=True)
class Case:
    """A number of a night: its sample size, what an honest and a changed endpoint give, and who speaks."""

    n: int
    honest: Draw
    changed: Draw
    check: Check
    cause: Cause
    state: State = State.CHANGED
    words: str = "no longer as it was before "


def share(rate: float, n: int) -> Draw:
    return lambda rng: rng.binomial(n, rate) / n


CASES: dict[str, Case] = {
    "bad_sessions": Case(
        125,
        lambda _: 0.0,
        lambda _: 2 / 125,
        Check.SESSIONS,
        Cause.MIXTURE,
        words="not as the reference since ",
    ),
    "greedy_margin": Case(
        200,
        lambda rng: 0.002 * np.exp(0.1 * rng.standard_normal()),
        lambda rng: 0.004 * np.exp(0.1 * rng.standard_normal()),
        Check.SAMPLING,
        Cause.NUMERICS,
    ),
    "border_distance": Case(
        20,
        lambda rng: 0.2 + 0.01 * rng.standard_normal(),
        lambda rng: 0.27 + 0.01 * rng.standard_normal(),
        Check.SAMPLING,
        Cause.NUMERICS,
    ),
    "sampling_log_e": Case(
        1200,
        lambda rng: -1 + 0.3 * rng.standard_normal(),
        lambda rng: 2.5 + 0.3 * rng.standard_normal(),
        Check.SAMPLING,
        Cause.SAMPLING,
        words="not as the reference since ",
    ),
    "border_violations": Case(20, share(0.002, 20), share(0.5, 20), Check.IDENTITY, Cause.IDENTITY),
    "answer_log_length": Case(
        60,
        lambda rng: 4.0 + 0.03 * rng.standard_normal(),
        lambda rng: 4.2 + 0.03 * rng.standard_normal(),
        Check.OUTPUT,
        Cause.UNKNOWN,
    ),
    "reasoning_share": Case(
        60,
        lambda rng: 0.4 + 0.01 * rng.standard_normal(),
        lambda rng: 0.48 + 0.01 * rng.standard_normal(),
        Check.OUTPUT,
        Cause.UNKNOWN,
    ),
    "capped_answers": Case(60, share(0.02, 60), share(0.3, 60), Check.OUTPUT, Cause.UNKNOWN),
    "empty_answers": Case(60, share(0.01, 60), share(0.3, 60), Check.OUTPUT, Cause.UNKNOWN, State.WORSE),
    "looping_answers": Case(60, share(0.05, 60), share(0.4, 60), Check.OUTPUT, Cause.UNKNOWN, State.WORSE),
    "flooded_answers": Case(60, share(0.0, 60), share(0.3, 60), Check.OUTPUT, Cause.UNKNOWN, State.WORSE),
    "foreign_answers": Case(60, share(0.0, 60), share(0.3, 60), Check.OUTPUT, Cause.UNKNOWN, State.WORSE),
    "effective_rate": Case(36, share(0.98, 36), share(0.5, 36), Check.TOOLCALLS, Cause.UNKNOWN, State.WORSE),
    "call_validity": Case(40, share(0.98, 40), share(0.5, 40), Check.TOOLCALLS, Cause.UNKNOWN, State.WORSE),
    "request_validity": Case(
        48, share(0.98, 48), share(0.5, 48), Check.TOOLCALLS, Cause.UNKNOWN, State.WORSE
    ),
    "leak_rate": Case(48, share(0.0, 48), share(0.3, 48), Check.TOOLCALLS, Cause.PARSING, State.WORSE),
    "parity_breaks": Case(24, share(0.01, 24), share(0.4, 24), Check.TOOLCALLS, Cause.PARSING, State.WORSE),
}
EVERY = sorted(CASES)


class Parts:
    """Nights with the numbers of parts, of which some have changed; ``only`` leaves others out."""

    def __init__(self, nights: Nights, seed: int = 1) -> None:
        self.nights = nights
        self.only = tuple(CASES)
        self._rng = np.random.default_rng(seed)

    def numbers(self, *changed: str) -> Mapping[str, tuple[float, int]]:
        cases = {metric: CASES[metric] for metric in self.only}
        return {
            metric: (float((case.changed if metric in changed else case.honest)(self._rng)), case.n)
            for metric, case in cases.items()
        }

    def pass_many(
        self,
        count: int,
        *changed: str,
        logprobs: Finding = SILENT,
        tokens: Finding = TOKENS,
        others: tuple[Finding, ...] = FINE,
        judge: bool = True,
    ) -> None:
        for _ in range(count):
            self.nights.pass_one(
                parts=self.numbers(*changed), logprobs=logprobs, tokens=tokens, others=others, judge=judge
            )

    def state(self, metric: str) -> Mapping[str, float | None]:
        """Return what the newest night's findings say of a stream."""
        findings = self.nights.judged[-1].findings
        (state,) = (
            finding.evidence["series"][metric]
            for finding in findings
            if metric in finding.evidence.get("series", {})
        )
        return state


@pytest.fixture
def parts(nights: Nights) -> Parts:
    return Parts(nights)


def raised(nights: Nights) -> set[str]:
    return {alarm.stream for alarm in nights.store.alarms("acme") if alarm.closed is None}


def changed(parts: Parts, metric: str, count: int = 8) -> datetime:
    """Let a change of ``metric`` be found, and return when it began."""
    parts.only = (metric,)
    parts.pass_many(30, judge=False)
    began = parts.nights.now
    parts.pass_many(count, metric)
    assert raised(parts.nights) == {metric}
    return began


def test_seventy_honest_nights_raise_nothing_and_every_stream_was_judged(parts: Parts) -> None:
    parts.pass_many(50, judge=False)
    parts.pass_many(20)
    assert parts.nights.store.alarms("acme") == ()
    for metric in CASES:
        state = parts.state(metric)
        assert (state["nights"], state["missing_nights"]) == (70, 0), metric
        assert state["evidence"] < RULE.threshold, metric
    assert {v.check: v.verdict for v in parts.nights.verdicts} == {
        Check.LOGPROBS: State.UNKNOWN,  # no logprobs at this endpoint, and its other streams are judged
        Check.SESSIONS: State.OK,
        Check.TOKENS: State.OK,
        Check.SAMPLING: State.OK,
        Check.IDENTITY: State.OK,
        Check.OUTPUT: State.OK,
        Check.TOOLCALLS: State.OK,
    }


@pytest.mark.parametrize("metric", EVERY)
def test_a_lasting_change_speaks_for_its_check_and_says_what_how_much_and_since_when(
    parts: Parts, metric: str
) -> None:
    case = CASES[metric]
    began = changed(parts, metric)
    others = FINE if case.check is not Check.LOGPROBS else ()
    parts.pass_many(1, metric, logprobs=FEW if case.check is Check.LOGPROBS else SILENT, others=others)
    verdict = parts.nights.verdict(case.check)
    assert (verdict.verdict, verdict.cause, verdict.n) == (case.state, case.cause, case.n)
    assert abs((verdict.since - began).days) <= 1
    assert verdict.reason.startswith(case.words)
    option = "" if case.check is Check.LOGPROBS else f" --check {case.check}"
    assert verdict.reason.endswith(f"ringtrue verdicts accept 'acme'{option} --by NAME --why TEXT")
    unlike = [v for v in parts.nights.verdicts if v.check is not case.check]
    assert {v.verdict for v in unlike} <= {State.OK, State.UNKNOWN}


@pytest.mark.parametrize("metric", EVERY)
def test_a_number_that_is_back_ends_its_alarm_and_one_that_is_not_keeps_it(parts: Parts, metric: str) -> None:
    changed(parts, metric)
    parts.pass_many(10, metric)
    assert raised(parts.nights) == {metric}
    parts.pass_many(10)
    assert raised(parts.nights) == set()
    (alarm,) = (alarm for alarm in parts.nights.store.alarms("acme") if alarm.stream == metric)
    assert alarm.by is None
    assert alarm.until is not None
    # The nights of the change are left out, so that it is found again.
    assert parts.state(metric)["nights"] < 50
    parts.pass_many(8, metric)
    assert raised(parts.nights) == {metric}


@pytest.mark.parametrize("metric", EVERY)
def test_an_accepted_change_is_no_alarm_again(parts: Parts, metric: str) -> None:
    case = CASES[metric]
    changed(parts, metric)
    nights = parts.nights
    with pytest.raises(UsageError, match="no alarm of a series stands here"):
        accept(nights.store, "acme", Check.CONTEXT, by="ann", why="so", at=nights.now)
    (alarm,), verdict = accept(nights.store, "acme", case.check, by="ann", why="new kernels", at=nights.now)
    assert (alarm.stream, alarm.by) == (metric, "ann")
    assert verdict.verdict in {State.OK, State.UNKNOWN}
    parts.pass_many(15, metric)
    assert raised(nights) == set()
    assert parts.state(metric)["missing_nights"] == 0


@pytest.mark.parametrize("metric", ["sampling_log_e", "greedy_margin"])
def test_what_was_honest_once_is_a_change_after_another_was_accepted(parts: Parts, metric: str) -> None:
    changed(parts, metric)
    accept(parts.nights.store, "acme", CASES[metric].check, by="ann", why="so", at=parts.nights.now)
    parts.pass_many(12, metric, judge=False)
    parts.pass_many(8)
    assert raised(parts.nights) == {metric}
    assert parts.nights.verdict(CASES[metric].check).reason.startswith("no longer as it was before ")


def test_before_the_baseline_is_there_the_missing_nights_are_said_and_output_is_unknown(parts: Parts) -> None:
    parts.pass_many(1)
    assert parts.nights.store.alarms("acme") == ()
    for metric in ("greedy_margin", "border_violations", "capped_answers"):
        assert (parts.state(metric)["missing_nights"], parts.state(metric)["evidence"]) == (14, None)
    for metric in ("sampling_log_e", "bad_sessions"):  # a stated null needs no baseline
        assert parts.state(metric)["missing_nights"] == 0
    verdict = parts.nights.verdict(Check.OUTPUT)
    assert verdict.verdict is State.UNKNOWN
    assert verdict.reason.startswith("60 answers; no baseline yet: 14 more nights")
    parts.pass_many(14, judge=False)
    parts.pass_many(5)
    verdict = parts.nights.verdict(Check.OUTPUT)
    assert verdict.verdict is State.OK
    assert verdict.reason.startswith("60 answers; held against 19 nights before, where lasting ")
    assert verdict.detectable_effect > 0


def test_a_check_of_which_the_examination_says_nothing_gets_its_verdict_from_its_nights(parts: Parts) -> None:
    parts.pass_many(1, others=())
    assert parts.nights.verdict(Check.OUTPUT).verdict is State.UNKNOWN
    assert parts.nights.verdict(Check.OUTPUT).reason.endswith(
        "; 14 more nights are needed before a change can be seen"
    )
    parts.pass_many(13, others=(), judge=False)
    parts.pass_many(1, others=())
    verdict = parts.nights.verdict(Check.OUTPUT)
    assert verdict.verdict is State.OK
    assert verdict.reason.startswith("as in the nights before: mean log length of answers ")
    parts.pass_many(1, others=(of_part(Check.OUTPUT, Severity.FAIL),))
    assert parts.nights.verdict(Check.OUTPUT).reason == "as tonight"


def test_other_token_ids_make_a_night_that_does_not_count_and_unseen_ids_leave_the_prompt_possible(
    parts: Parts,
) -> None:
    parts.only = ("greedy_margin", "empty_answers")
    parts.pass_many(20, tokens=UNSEEN, judge=False)
    parts.pass_many(5, "greedy_margin", "empty_answers", tokens=OTHER_IDS)
    assert parts.nights.store.alarms("acme") == ()
    parts.pass_many(8, "greedy_margin", tokens=UNSEEN)
    assert parts.state("greedy_margin")["nights"] == 28
    verdict = parts.nights.verdict(Check.SAMPLING)
    assert verdict.cause is Cause.NUMERICS
    assert verdict.alternatives == (Cause.PROMPT, Cause.IDENTITY, Cause.SAMPLING)


def test_where_logprobs_are_the_models_other_choices_of_tokens_come_from_sampling(parts: Parts) -> None:
    parts.only = ("greedy_margin",)
    parts.pass_many(20, judge=False)
    parts.pass_many(8, "greedy_margin", logprobs=replace(SILENT, measured=True, value=0.001))
    verdict = parts.nights.verdict(Check.SAMPLING)
    assert (verdict.cause, verdict.alternatives) == (Cause.SAMPLING, ())


def test_some_bad_sessions_explain_what_the_other_numbers_of_logprobs_show(nights: Nights) -> None:
    rng = np.random.default_rng(2)
    for night in range(30):
        bad = 0.0 if night < 20 else 2 / 125
        kl = 0.001 * np.exp(0.1 * rng.standard_normal()) * (1 if night < 20 else 3)
        nights.pass_one(kl, parts={"bad_sessions": (bad, 125)})
    assert raised(nights) == {"kl_mean@32", "bad_sessions"}
    verdict = nights.verdict(Check.LOGPROBS)
    assert verdict.cause is Cause.MIXTURE
    assert verdict.alternatives == (Cause.NUMERICS, Cause.IDENTITY)


def test_a_check_of_which_nothing_was_measured_stays_unknown_and_names_its_alarm(parts: Parts) -> None:
    began = changed(parts, "greedy_margin")
    silent = replace(of_part(Check.SAMPLING, measured=False), party=Party.PROVIDER, message="no answer")
    parts.nights.pass_one(logprobs=SILENT, others=(silent,))
    verdict = parts.nights.verdict(Check.SAMPLING)
    assert (verdict.verdict, verdict.reason) == (State.UNKNOWN, "no answer")
    (finding,) = (f for f in parts.nights.judged[-1].findings if f.check is Check.SAMPLING)
    assert finding.evidence["standing_since"] == {"greedy_margin": began.isoformat()}


def test_an_alarm_is_not_taken_back_on_a_night_whose_own_rule_says_changed(parts: Parts) -> None:
    changed(parts, "sampling_log_e")
    parts.pass_many(12, others=(of_part(Check.SAMPLING, Severity.WARN), *FINE[1:]))
    assert raised(parts.nights) == {"sampling_log_e"}


def test_fewer_empty_answers_are_changed_and_not_worse(nights: Nights) -> None:
    rng = np.random.default_rng(3)
    for night in range(40):
        rate = 0.4 if night < 30 else 0.02
        events = {"empty_answers": (rng.binomial(60, rate) / 60, 60)}
        nights.pass_one(parts=events, logprobs=SILENT, judge=night >= 30)
    verdict = nights.verdict(Check.OUTPUT)
    assert (verdict.verdict, verdict.metric) == (State.CHANGED, "empty_answers")
    assert verdict.interval.low <= verdict.value < verdict.interval.high < 0.1


def test_a_rate_that_may_not_fall_is_not_worse_where_it_rises(nights: Nights) -> None:
    def pass_many(count: int, right: int) -> None:
        for _ in range(count):
            nights.pass_one(parts={"effective_rate": (right / 36, 36)}, others=FINE)

    pass_many(30, 18)
    pass_many(10, 35)
    assert raised(nights) == {"effective_rate"}
    (verdict,) = (one for one in nights.verdicts if one.check is Check.TOOLCALLS)
    assert verdict.verdict is State.CHANGED


def test_what_a_rate_of_one_can_fall_by_is_stated(nights: Nights) -> None:
    for _ in range(30):
        nights.pass_one(parts={"effective_rate": (1.0, 36)}, others=FINE)
    (finding,) = (one for one in nights.judged[-1].findings if one.check is Check.TOOLCALLS)

    assert 0 < finding.evidence["series"]["effective_rate"]["detectable"] < 0.5
