"""Rates over judged exchanges: what is counted, over what, and what too little data comes to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringtrue.stats import wilson
from tests.unit.toolcall_validator.exchanges import (
    OK,
    call,
    delta,
    opening,
    plain,
    stream,
    tool,
)
from toolcall_validator.differences import difference
from toolcall_validator.judgement import Judgement, prompt_key
from toolcall_validator.metrics import (
    RATES,
    Metrics,
    Rate,
    Trigger,
    difference_interval,
    success_of_steps,
)
from toolcall_validator.tally import Tally
from toolcall_validator.validate import Validator

REQUIRED = {"tool_choice": "required"}
LEAKED = '<tool_call>{"name": "weather", "arguments": {"place": "Oslo"}}</tool_call>'
BROKEN_SCHEMA = [tool(parameters={"type": "nonsense"})]


def judged(record: dict[str, Any]) -> Judgement:
    return Validator().judge(record)


def tallied(*records: dict[str, Any], **said: Any) -> Metrics:
    """The metrics of these answers, each to a prompt of its own."""
    tally = Tally()
    for number, record in enumerate(records):
        tally.add(str(number), judged(record), **said)
    return tally.metrics()


def counts(metrics: Metrics, name: str) -> tuple[int, int]:
    rate = metrics.rates[name]
    return rate.events, rate.trials


def test_a_judgement_has_the_faults_of_validate_and_the_calls_of_the_same_assembly() -> None:
    record = stream(opening(OK), opening('{"place": 3}', identity="call_b", index=1))
    found = judged(record)
    assert found.faults == Validator().validate(record)
    assert (found.calls.delivered, found.calls.emitted, found.calls.sound) == (2, 2, 1)
    assert found.outcome == "schema.string_as_number"


def test_calls_of_every_choice_are_counted_each_with_its_own_faults() -> None:
    record = plain(call())
    bad = {"index": 1, "message": {"tool_calls": [call("oops")]}, "finish_reason": "tool_calls"}
    record["response"]["choices"].append(bad)
    calls = judged(record).calls
    assert (calls.delivered, calls.sound) == (2, 1)


@pytest.mark.parametrize(
    ("content", "leaked"),
    [
        (LEAKED, 1),
        (LEAKED + "\n" + LEAKED.replace("Oslo", "Bergen"), 2),
        ('{"name": "weather", "arguments": {"place": "Oslo"}}', 1),
        ('<tool_call>{"name": "weather", "arguments": [', 1),
        ("<tool_call>" * 5_000, 1),
        (LEAKED * 5_000, 64),
        ("It is a nice day.<|im_end|>", 0),
        ("It is a nice day.", 0),
    ],
)
def test_leaked_calls_are_emitted_each_of_them_and_none_is_sound(content: str, leaked: int) -> None:
    calls = judged(plain(content=content)).calls
    assert (calls.delivered, calls.emitted, calls.sound) == (0, leaked, 0)


def test_a_call_that_leaked_and_was_delivered_as_well_is_emitted_once() -> None:
    both = judged(plain(call(), content=LEAKED)).calls
    assert (both.delivered, both.emitted) == (1, 1)
    other = judged(plain(call('{"place": "Bergen"}'), content=LEAKED)).calls
    assert (other.delivered, other.emitted) == (1, 2)


def test_warnings_make_no_call_invalid() -> None:
    record = stream(opening("", identity="call_a"), delta(tool_calls=None), opening(OK, identity=None))
    found = judged(record)
    assert [one.code for one in found.faults] == [
        "stream.name_resent",
        "stream.null_identity",
        "stream.null_list",
    ]
    metrics = tallied(record)
    assert counts(metrics, "call_validity") == counts(metrics, "request_validity") == (1, 1)


def test_the_effective_rate_counts_sound_calls_where_a_call_is_due_whatever_the_finish_reason() -> None:
    metrics = tallied(
        plain(call(), asked=REQUIRED),
        plain(call(), asked=REQUIRED, finish="stop"),
        plain(call('{"place": 3}'), asked=REQUIRED),
        plain(content=LEAKED, asked=REQUIRED),
        plain(content="No."),
    )
    assert counts(metrics, "effective_rate") == (2, 4)
    assert counts(metrics, "request_validity") == (2, 5)
    assert counts(metrics, "call_validity") == (2, 4)
    assert counts(metrics, "leak_rate") == (1, 5)
    assert counts(metrics, "finish_consistency") == (4, 5)


def test_a_named_choice_and_the_references_own_call_make_a_call_due() -> None:
    named = {"tool_choice": {"type": "function", "function": {"name": "weather"}}}
    assert counts(tallied(plain(call(), asked=named)), "effective_rate") == (1, 1)
    assert counts(tallied(plain(content="No."), reference_called=True), "effective_rate") == (0, 1)
    assert "effective_rate" not in tallied(plain(content="No."), reference_called=False).rates
    assert "effective_rate" not in tallied(plain(content="No.")).rates


def test_a_request_with_a_broken_schema_and_an_exchange_without_an_answer_score_nobody() -> None:
    unanswered = {"request": {"model": "m"}, "error": {"kind": "server_error", "message": "x"}}
    metrics = tallied(plain(call("oops"), asked={"tools": BROKEN_SCHEMA}), unanswered, first_attempt=False)
    assert (metrics.exchanges, metrics.scored) == (2, 0)
    assert list(metrics.rates) == ["first_attempt_availability"]
    assert counts(metrics, "first_attempt_availability") == (0, 2)


def test_a_body_that_came_with_an_error_of_the_request_is_no_answer() -> None:
    refused = plain(content="") | {"response": {"detail": "Not Found"}, "error": {"kind": "not_found"}}
    assert not judged(refused).answered
    assert Validator().validate(refused) == ()
    broken_off = stream(opening(OK), finish=None) | {"error": {"kind": "truncated"}}
    assert [one.code for one in Validator().validate(broken_off)] == ["finish.missing"]


def test_a_hidden_length_is_counted_where_cap_and_tokens_are_known() -> None:
    capped, usage = {"max_tokens": 12}, {"completion_tokens": 12}
    metrics = tallied(
        plain(content="Rain.", asked=capped, usage=usage),
        plain(content="Rain.", asked=capped, usage=usage, finish="length"),
        plain(content="Rain.", asked=capped, usage=None),
        plain(content="Rain.", usage=usage),
    )
    assert counts(metrics, "hidden_length_rate") == (1, 2)


def test_usage_is_missing_of_those_that_were_asked_for_it() -> None:
    metrics = tallied(
        stream(opening(OK)), stream(opening(OK), usage=None), plain(content="Rain.", usage=None)
    )
    assert counts(metrics, "missing_usage_rate") == (1, 2)


def test_an_answer_that_the_cap_ended_is_no_call_that_failed_to_come_and_counts_in_all_else() -> None:
    metrics = tallied(plain(content="I shall look", finish="length"), reference_called=True)
    assert "effective_rate" not in metrics.rates
    assert metrics.trigger is None
    assert counts(metrics, "leak_rate") == (0, 1)


def test_the_shape_of_output_and_identities_and_schema_faults_have_rates_of_their_own() -> None:
    looping = "!" * 80
    metrics = tallied(
        plain(content=looping),
        plain(content=""),
        plain(content="It is called Осло there."),
        plain(call(), call(identity="")),
        plain(call('{"place": "Oslo", "units": "feet"}')),
        plain(content="{}", asked={"response_format": {"type": "json_object"}}),
        plain(content="{", asked={"response_format": {"type": "json_object"}}),
    )
    assert counts(metrics, "loop_rate") == counts(metrics, "empty_rate") == (1, 7)
    assert counts(metrics, "script_rate") == (1, 7)
    assert counts(metrics, "id_integrity") == (2, 3)
    assert counts(metrics, "schema.enum") == (1, 3)
    assert counts(metrics, "schema.type") == (0, 3)
    assert counts(metrics, "structured_validity") == (1, 2)


def test_nothing_counted_is_null_and_every_metric_is_named() -> None:
    found = Tally().metrics().as_dict()
    named = {*RATES, "stream_parity", "trigger_f1", "reference_rerun_f1", "success_of_steps"}
    assert named <= found.keys()
    assert all(found[name] is None for name in named)


def test_a_rate_has_the_wilson_interval_of_as_many_prompts_as_there_were() -> None:
    once = Rate(9, 10, 10)
    assert once.interval == wilson(9, 10, 0.95)
    crowd = Rate(900, 1000, 10)
    assert crowd.interval == once.interval
    tally = Tally()
    for _ in range(5):
        tally.add("one prompt", judged(plain(content="No.")))
    rate = tally.metrics().rates["request_validity"]
    assert (rate.trials, rate.prompts) == (5, 1)


def test_fifteen_steps_succeed_as_the_power_of_one_with_its_interval() -> None:
    rate = Rate(90, 100, 100)
    found = success_of_steps(rate)
    assert found is not None
    value, (low, high) = found
    assert value == pytest.approx(0.9**15)
    assert (low, high) == pytest.approx((rate.interval.low**15, rate.interval.high**15))
    assert success_of_steps(None) is None


def test_trigger_f1_is_of_delivered_calls_where_the_choice_was_free_beside_the_references_own() -> None:
    tally = Tally()
    said = [(True, True)] * 6 + [(True, False)] * 2 + [(False, True)] * 2 + [(False, False)] * 30
    for number, (mine, reference) in enumerate(said):
        answer = plain(call()) if mine else plain(content="No.")
        tally.add(str(number), judged(answer), reference_called=reference)
    tally.add("forced", judged(plain(call(), asked=REQUIRED)), reference_called=True)
    tally.add("leaked", judged(plain(content=LEAKED)), reference_called=True)
    tally.add_rerun("0", first=True, again=True)
    metrics = tally.metrics()
    assert metrics.trigger is not None
    assert metrics.rerun is not None
    assert (metrics.trigger.both, metrics.trigger.one) == (6, 5)
    assert metrics.trigger.f1 == pytest.approx(12 / 17)
    assert metrics.rerun.f1 == 1
    low, high = metrics.trigger.interval.low, metrics.trigger.interval.high
    assert low is not None
    assert high is not None
    assert 0.3 < low < 12 / 17 < high < 0.95
    assert metrics.rerun.interval.low is not None
    assert metrics.rerun.interval.low < 0.5  # one prompt proves nothing


def test_the_interval_of_f1_covers() -> None:
    rng = np.random.default_rng(5)
    share, prompts, rounds = 0.8, 60, 2000
    f1 = 2 * share / (1 + share)
    hits = 0
    for both in rng.binomial(prompts, share, rounds):
        interval = Trigger(int(both), prompts - int(both), prompts).interval
        hits += interval.low <= f1 <= interval.high
    assert hits / rounds > 0.93


def parity_of(*failing: tuple[bool, bool]) -> Metrics:
    """Pairs of prompts, of which the plain and the streamed answer fail or don't."""
    tally = Tally()
    for number, (one, two) in enumerate(failing):
        tally.add(str(number), judged(plain(call("oops" if one else OK))))
        tally.add(str(number), judged(stream(opening("oops" if two else OK))))
    return tally.metrics()


def test_parity_is_the_share_of_failing_streams_minus_that_of_plain_answers_by_prompt() -> None:
    metrics = parity_of(*[(False, True)] * 6, *[(True, False)] * 2, *[(False, False)] * 12)
    assert metrics.parity is not None
    assert (metrics.parity.value, metrics.parity.pairs, metrics.parity.broken) == (0.2, 20, 8)
    assert metrics.parity.interval.low < 0.2 < metrics.parity.interval.high


def test_equal_pairs_are_no_proof_of_parity_and_single_answers_are_no_pair() -> None:
    few, many = parity_of(*[(False, False)] * 3).parity, parity_of(*[(False, False)] * 200).parity
    assert few is not None
    assert many is not None
    assert few.interval.high > 0.5
    assert 0 < many.interval.high < 0.05
    assert tallied(plain(call()), stream(opening(OK))).parity is None


def test_the_interval_of_a_paired_difference_covers() -> None:
    rng = np.random.default_rng(3)
    rounds, pairs, better, worse = 2000, 40, 0.15, 0.05
    drawn = rng.multinomial(pairs, [better, worse, 1 - better - worse], rounds)
    bounds = [difference_interval(int(up), int(down), pairs) for up, down, _ in drawn]
    assert np.mean([b.low <= better - worse <= b.high for b in bounds]) >= 0.95


def tally_of(shares: np.ndarray, rng: np.random.Generator, answers: int = 3) -> Tally:
    """Answers to prompts of which each has its own chance of a valid one."""
    valid, broken = judged(plain(call())), judged(plain(call("oops")))
    tally = Tally()
    for number, share in enumerate(shares):
        for _ in range(answers):
            tally.add(str(number), valid if rng.random() < share else broken)
    return tally


def test_the_difference_of_two_endpoints_is_over_prompts_that_both_answered_and_covers() -> None:
    rng = np.random.default_rng(11)
    hits, rounds = 0, 120
    for _ in range(rounds):
        shares = rng.beta(8, 2, 40)
        one, two = tally_of(shares, rng), tally_of(np.clip(shares - 0.1, 0, 1), rng)
        found = difference(one, two, rng)
        assert found is not None
        hits += found.interval.low <= 0.1 <= found.interval.high
    assert hits / rounds >= 0.9


def test_the_difference_is_repeated_to_the_digit_by_its_seed() -> None:
    rng = np.random.default_rng(2)
    one, two = tally_of(np.full(30, 0.9), rng), tally_of(np.full(30, 0.5), rng)
    first, again = (difference(one, two, np.random.default_rng(4)) for _ in range(2))
    assert first == again


def test_equal_or_few_prompts_leave_a_difference_its_width() -> None:
    rng = np.random.default_rng(1)
    same = difference(tally_of(np.ones(20), rng), tally_of(np.ones(20), rng), rng)
    assert same is not None
    assert same.value == 0
    assert same.interval.low < -0.1
    assert same.interval.high > 0.1
    few = difference(tally_of(np.ones(3), rng), tally_of(np.array([1.0, 1.0, 0.0]), rng), rng)
    assert few is not None
    assert few.interval.low < 0 < few.interval.high
    tenth = difference_interval(10.0, 0.0, 100)  # a hundred prompts, each better by a tenth
    assert tenth.low < 0.1 < tenth.high
    other = Tally()
    other.add("another prompt", judged(plain(call())))
    assert difference(other, tally_of(np.ones(3), rng), rng) is None


def test_a_prompt_is_known_by_what_was_asked_and_not_by_how() -> None:
    one = prompt_key(plain(content="No."))
    assert one == prompt_key(stream(opening(OK))) == prompt_key(plain(asked={"model": "b", "seed": 3}))
    assert one != prompt_key(plain(asked={"tools": []}))
    deep: dict[str, Any] = {}
    for _ in range(600):
        deep = {"a": deep}
    assert prompt_key({"request": {"x": deep}}) != prompt_key({"request": {"x": "\ud800"}})
    assert len(prompt_key(None)) == 16
