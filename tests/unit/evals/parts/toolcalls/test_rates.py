"""The metrics of a night: what is counted, over what, and what is not measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collector.streams.watched import WATCHED
from probes.toolcall_suite.prompt import Due
from ringtrue.records import Request
from tests.unit.evals.parts.toolcalls.talking import Night, Said, Talking, examine, part, prompt_of, sound
from tests.unit.evals.parts.toolcalls.test_part import broken, leaking, streamed_only


def value(night: Night, metric: str) -> tuple[float, int]:
    return night.numbers[metric].value, night.numbers[metric].n


def uncalled(request: Request) -> Said:
    said = sound(request)
    return replace(said, calls=(), content="No.") if said.calls else said


async def test_a_sound_night_hands_on_every_number_with_its_sample() -> None:
    night = await examine(Talking(), of=part(count=67))

    due = 51 * 2
    calls = sum(len(prompt_of(exchange.request).tools) for exchange in night.asker.exchanges)
    assert value(night, "effective_rate") == (1, due)
    assert value(night, "call_validity") == (1, calls)
    assert value(night, "request_validity") == (1, 134)
    assert value(night, "id_integrity") == (1, calls)
    assert value(night, "finish_consistency") == (1, 134)
    zero = ("leak_rate", "hidden_length_rate", "empty_rate", "loop_rate", "script_rate")
    assert [value(night, metric) for metric in zero] == [(0, 134)] * 5
    assert value(night, "missing_usage_rate") == (0, 67)  # plain answers are not asked for it
    assert value(night, "stream_parity") == value(night, "parity_breaks") == (0, 67)
    assert night.finding.evidence["metrics"]["trigger_f1"] is None  # the reference was not asked
    assert night.numbers["effective_rate"].probe == "toolcalls"


async def test_every_watched_number_of_the_part_is_handed_on() -> None:
    night = await examine(Talking())

    assert {row.name for row in WATCHED if row.part == "toolcalls"} <= night.numbers.keys()


async def test_the_finding_says_what_is_left_of_fifteen_steps() -> None:
    def say(request: Request) -> Said:
        return uncalled(request) if prompt_of(request).id == "tools-auto-weather" else sound(request)

    night = await examine(Talking(say=say), of=part(count=67))
    metrics = night.finding.evidence["metrics"]["effective_rate"]
    low, high = metrics["interval"]

    assert (metrics["events"], metrics["trials"], metrics["prompts"]) == (100, 102, 51)
    assert (
        f"effective rate 0.98 [{low:.2f}, {high:.2f}] over 51 requests that want a call"
        in night.finding.message
    )
    assert (
        f"15 steps in a row succeed at a rate of 0.74 [{low**15:.2g}, {high**15:.2g}]"
        in night.finding.message
    )
    assert low < 0.9 < high  # as wide as 51 requests leave it, not 102 answers


async def test_leaked_calls_are_emitted_and_not_valid() -> None:
    night = await examine(Talking(say=leaking), of=part(count=67))

    assert value(night, "effective_rate") == (0, 102)
    assert value(night, "call_validity") == (0, 106)  # those of parallel sets each
    assert value(night, "leak_rate")[0] == pytest.approx(102 / 134)
    assert "id_integrity" not in night.numbers  # no call was delivered that could have an id


async def test_faults_of_the_model_count_in_what_is_delivered() -> None:
    night = await examine(Talking(say=broken), of=part(count=67))

    assert night.finding.code == "toolcalls.sound"  # they are not the endpoint's
    assert value(night, "effective_rate")[0] < 0.1
    assert value(night, "request_validity")[0] < 0.3


async def test_parity_is_the_share_of_faults_that_streams_have_more() -> None:
    night = await examine(Talking(say=streamed_only(leaking)), of=part(count=67))

    assert value(night, "stream_parity") == (pytest.approx(51 / 67), 67)
    low, high = night.finding.evidence["metrics"]["stream_parity"]["interval"]
    assert 0.5 < low < 51 / 67 < high < 1
    assert value(night, "parity_breaks") == (pytest.approx(51 / 67), 67)


async def test_nothing_that_wants_a_call_is_no_rate_of_zero() -> None:
    of = part(suite=[p for p in part(count=67)._suite if p.due is not Due.CALL])
    night = await examine(Talking(), of=of)

    assert {"effective_rate", "call_validity", "id_integrity"} & night.numbers.keys() == set()
    assert "effective rate" not in night.finding.message
    assert value(night, "request_validity") == (1, 32)


async def test_pairs_that_are_all_equal_leave_room_for_a_difference() -> None:
    low, high = (await examine(Talking())).finding.evidence["metrics"]["stream_parity"]["interval"]

    assert low == -high
    assert 0.1 < high < 0.3  # 24 pairs
