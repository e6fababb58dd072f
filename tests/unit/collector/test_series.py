"""The series of the context curve: one stream a bucket, judged by the night detector."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from collector.acceptance import accept
from collector.lease import NAME, TTL
from collector.series import Judged, Watch, judge_series, watch_for
from ringtrue.config import settings_from
from ringtrue.errors import LeaseHeldError, UsageError
from ringtrue.records import Cause, Check, State
from tests.unit.collector.nights import (
    FEW,
    FIRST,
    FLOOR,
    OTHER_IDS,
    RULE,
    SILENT,
    TOKENS,
    WORSE,
    Nights,
    honest,
    states,
)


def test_sixty_honest_nights_are_all_ok(nights: Nights) -> None:
    verdicts = nights.pass_many(np.column_stack([honest(60), honest(60, seed=2)]))
    assert states(verdicts) == {State.OK}
    assert verdicts[-1].since == FIRST
    assert nights.state["kl_mean@32"]["nights"] == 60
    assert nights.state["kl_mean@128"]["evidence"] < RULE.threshold


def test_before_the_baseline_is_there_the_evidence_says_how_many_nights_are_missing(nights: Nights) -> None:
    nights.pass_many(honest(14))
    assert nights.state["kl_mean@32"] == {
        "nights": 14,
        "missing_nights": 1,
        "evidence": None,
        "guarded": None,
        "threshold": RULE.threshold,
        "detectable": None,
    }
    nights.pass_one(0.5)
    assert nights.state["kl_mean@32"]["missing_nights"] == 0
    assert nights.store.current_verdicts()[0].verdict is State.OK


def test_a_lasting_shift_becomes_changed_since_the_night_it_began(nights: Nights) -> None:
    nights.pass_many(honest(30))
    began = nights.now
    verdicts = nights.pass_many(honest(8, seed=3, shift=6))
    first = [verdict.verdict for verdict in verdicts].index(State.CHANGED)
    assert first <= 4
    assert states(verdicts[first:]) == {State.CHANGED}
    assert {verdict.since for verdict in verdicts[first:]} == {began}
    assert verdicts[-1].cause is Cause.NUMERICS
    assert verdicts[-1].alternatives == (Cause.MIXTURE, Cause.IDENTITY)
    assert "no longer as it was before 2026-03-31: KL at 32 tokens 0.00" in verdicts[-1].reason
    assert "ringtrue verdicts accept 'acme' --by NAME --why TEXT" in verdicts[-1].reason
    (alarm,) = nights.store.alarms("acme", Check.LOGPROBS)
    assert alarm.evidence >= alarm.threshold == RULE.threshold
    evidence = nights.judged[-1].findings[-1].evidence["kl_mean@32"]
    assert evidence == {
        "since": began.isoformat(),
        "evidence": alarm.evidence,
        "threshold": alarm.threshold,
    }


def test_one_night_far_off_is_no_alarm(nights: Nights) -> None:
    nights.pass_many(honest(30))
    assert nights.pass_one(1.0).verdict is State.OK
    assert states(nights.pass_many(honest(10, seed=4))) == {State.OK}


def test_a_change_in_some_lengths_only_may_be_one_of_context(nights: Nights) -> None:
    nights.pass_many(np.column_stack([honest(30), honest(30, seed=2)]))
    verdicts = nights.pass_many(np.column_stack([honest(8, seed=5), honest(8, seed=6, shift=8)]))
    assert verdicts[-1].verdict is State.CHANGED
    assert "KL at 128 tokens" in verdicts[-1].reason
    assert verdicts[-1].alternatives[-1] is Cause.CONTEXT


def test_token_ids_known_by_their_counts_only_leave_the_prompt_possible(nights: Nights) -> None:
    counted = replace(TOKENS, evidence={"counted": True})
    nights.pass_many(honest(30), tokens=counted)
    verdict = nights.pass_many(honest(8, seed=3, shift=6), tokens=counted)[-1]
    assert verdict.alternatives[0] is Cause.PROMPT


def changed(nights: Nights) -> datetime:
    """Let a shift be found, and return when it began."""
    nights.pass_many(honest(30))
    began = nights.now
    assert nights.pass_many(honest(8, seed=3, shift=6))[-1].verdict is State.CHANGED
    return began


def test_worse_stays_worse_and_too_few_prompts_become_changed_while_the_alarm_stands(nights: Nights) -> None:
    changed(nights)
    assert nights.pass_one(FLOOR * 1.8, logprobs=WORSE).verdict is State.WORSE
    assert nights.pass_one(FLOOR * 1.8, logprobs=FEW).verdict is State.CHANGED


def test_too_few_prompts_stay_unknown_while_no_alarm_stands(nights: Nights) -> None:
    assert states(nights.pass_many(honest(30), logprobs=FEW)) == {State.UNKNOWN}
    assert nights.pass_many(honest(8, seed=3, shift=6), logprobs=FEW)[-1].verdict is State.CHANGED


def test_a_night_that_measured_nothing_is_unknown_and_the_alarm_outlasts_it(nights: Nights) -> None:
    began = changed(nights)
    verdict = nights.pass_one(logprobs=SILENT)
    assert (verdict.verdict, verdict.reason) == (State.UNKNOWN, "no answer")
    assert nights.judged[-1].findings[0].evidence["standing_since"] == {"kl_mean@32": began.isoformat()}
    again = nights.pass_one(FLOOR * 1.8)
    assert (again.verdict, again.since) == (State.CHANGED, began)


def test_an_alarm_outlasts_the_window_in_which_its_change_can_be_seen(nights: Nights) -> None:
    began = changed(nights)
    verdicts = nights.pass_many(honest(120, seed=7, shift=6))
    assert states(verdicts) == {State.CHANGED}
    assert verdicts[-1].since == began
    assert len(nights.store.alarms("acme", Check.LOGPROBS)) == 1


def test_an_accepted_change_is_ok_at_once_and_its_nights_are_the_new_baseline(nights: Nights) -> None:
    began = changed(nights)
    (alarm,), verdict = accept(
        nights.store, "acme", Check.LOGPROBS, by="ann", why="new kernels", at=nights.now
    )
    assert (alarm.by, alarm.why, alarm.closed, alarm.since) == ("ann", "new kernels", nights.now, began)
    assert verdict.verdict is State.OK
    assert nights.store.current_verdicts("acme")[0] == verdict
    assert states(nights.pass_many(honest(40, seed=8, shift=6))) == {State.OK}
    assert nights.state["kl_mean@32"]["nights"] == 48
    # What was honest once is a change now.
    assert nights.pass_many(honest(8, seed=9))[-1].verdict is State.CHANGED


def test_accepting_needs_an_alarm_a_name_and_a_reason_and_no_cycle_beside_it(nights: Nights) -> None:
    nights.pass_many(honest(2))
    with pytest.raises(UsageError, match="acme logprobs: no alarm of a series stands here"):
        accept(nights.store, "acme", Check.LOGPROBS, by="ann", why="so", at=nights.now)
    with pytest.raises(UsageError, match="--by and --why: is empty"):
        accept(nights.store, "acme", Check.LOGPROBS, by="ann", why=" ", at=nights.now)
    nights.store.acquire_lease(NAME, "host-a pid 7", TTL)
    with pytest.raises(LeaseHeldError, match="host-a pid 7 runs a cycle"):
        accept(nights.store, "acme", Check.LOGPROBS, by="ann", why="so", at=nights.now)


def test_a_stream_that_is_back_for_five_nights_is_ok_and_keeps_its_baseline(nights: Nights) -> None:
    changed(nights)
    verdicts = nights.pass_many(np.full(5, FLOOR))
    assert [verdict.verdict for verdict in verdicts] == [State.CHANGED] * 4 + [State.OK]
    (alarm,) = nights.store.alarms("acme", Check.LOGPROBS)
    assert (alarm.by, alarm.closed) == (None, nights.now - timedelta(days=1))
    assert states(nights.pass_many(honest(20, seed=10))) == {State.OK}
    # The 30 nights before, the 5 of the return and the 20 since: the excursion is left out.
    assert nights.state["kl_mean@32"]["nights"] == 55
    assert nights.pass_many(honest(8, seed=3, shift=6))[-1].verdict is State.CHANGED


def test_missing_nights_are_no_nights(nights: Nights) -> None:
    nights.pass_many(honest(20))
    nights.now += timedelta(days=9)
    nights.pass_one(5.0, tokens=OTHER_IDS)  # not on the model's own token IDs
    nights.pass_one(logprobs=SILENT)
    nights.pass_one(5.0, n=40)  # a third of the prompts is missing
    nights.pass_one(5.0, k=5)
    nights.pass_one(5.0, basis="other prompts")
    began = nights.now
    verdicts = nights.pass_many(honest(8, seed=3, shift=6))
    assert verdicts[-1].verdict is State.CHANGED
    assert verdicts[-1].since == began
    assert nights.state["kl_mean@32"]["nights"] == 28


def test_of_two_runs_in_one_night_the_newest_counts(nights: Nights) -> None:
    for value in honest(30):
        nights.pass_one(5.0, after=timedelta(hours=3))
        nights.pass_one(value, after=timedelta(hours=21))
    assert nights.state["kl_mean@32"]["nights"] == 30
    began = nights.now
    verdicts = nights.pass_many(honest(8, seed=3, shift=6))
    assert (verdicts[-1].verdict, verdicts[-1].since) == (State.CHANGED, began)


def test_only_the_last_nights_are_read(nights: Nights) -> None:
    nights.pass_many(honest(100))
    assert nights.state["kl_mean@32"]["nights"] == 90


def test_a_renamed_endpoint_is_a_new_stream(nights: Nights) -> None:
    nights.pass_many(honest(30))
    verdicts = nights.pass_many(honest(8, seed=3, shift=6), endpoint="acme-2")
    assert states(verdicts) == {State.OK}
    assert nights.state["kl_mean@32"]["missing_nights"] == 7


def test_a_constant_series_is_no_alarm_and_a_step_from_it_is(nights: Nights) -> None:
    assert states(nights.pass_many(np.full(30, FLOOR))) == {State.OK}
    assert states(nights.pass_many(np.full(8, FLOOR + 2e-5))) == {State.OK}
    assert nights.pass_many(np.full(8, 2 * FLOOR))[-1].verdict is State.CHANGED


def test_the_threshold_pays_for_every_endpoint_bucket_and_number_that_is_asked() -> None:
    endpoint = {"name": "a", "base_url": "http://a/v1", "model": "m"}
    content = {"endpoints": [endpoint], "probe": {"buckets": [[32, 4], [128, 4]]}}
    off = dict.fromkeys(("sampled", "sessions", "greedy", "border", "answers", "toolcalls"), 0)

    def streams(**parts: int) -> float:
        alarms = {"false_alarms_per_year": 0.5}
        settings = settings_from({**content, "parts": off | parts, "alarms": alarms}, source="test")
        watch = watch_for(settings, endpoints=3, basis="b")
        assert watch.basis == "b"
        return watch.rule.threshold * 0.5 / 365 / 3

    assert streams() == 2
    assert streams(sessions=125, sampled=10) == 4
    assert streams(border=20, greedy=1) == 5
    assert streams(answers=60) == 9
    assert streams(toolcalls=24) == 7


def test_findings_without_logprobs_are_left_as_they_are(nights: Nights) -> None:
    judged = judge_series(nights.store, "acme", [TOKENS], Watch("b", RULE), run="r1", at=FIRST)
    assert judged == Judged((TOKENS,))
