"""States of prompts over nights, through whole cycles: the same messages, other token IDs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from collector.acceptance import accept
from collector.prompt_states import STREAM
from evals.parts.prompts.states import DEPARTURE, IDS, OWN
from ringtrue.records import Cause, Check, Finding, Observation, State, Verdict
from tests.unit.collector.bench import Bench, finding

DAY = timedelta(days=1)
BEFORE = {"one_user.0a": 11.0, "system.0b": 12.0, "one_tool.0c": 13.0}
OTHER_TOOLS = {**BEFORE, "one_tool.0c": 99.0}


@dataclass
class Served:
    """What every endpoint shows tonight: the state of each chat, and which are the model's own."""

    bench: Bench
    states: Mapping[str, float] = field(default_factory=lambda: BEFORE)
    metric: str = IDS
    own: Mapping[str, float] = field(default_factory=dict)
    measured: bool = True

    def numbers(self, name: str, run: str) -> Sequence[Observation]:
        now = self.bench.time.now
        return [
            Observation(name, "prompts", metric, value, "hash", 1, now, run, session=label)
            for metric, values in ((self.metric, self.states), (OWN, self.own))
            for label, value in values.items()
        ]

    async def tokens(self, emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await emit()
        return [replace(finding(name), check=Check.TOKENS, code="tokens.equal", measured=self.measured)]

    async def night(self) -> Verdict:
        await self.bench.cycle()
        self.bench.time.now += DAY
        return self.bench.store.previous_verdicts()["a", Check.TOKENS]

    def alarms(self) -> list[bool]:
        """Whether each alarm of a's is closed."""
        alarms = self.bench.store.alarms("a", Check.TOKENS)
        assert {alarm.stream for alarm in alarms} <= {STREAM}
        return [alarm.closed is not None for alarm in alarms]


@pytest.fixture
def served(bench: Bench) -> Served:
    served = Served(bench)
    bench.measured = served.numbers
    bench.scripts |= {"a": served.tokens, "b": served.tokens}
    return served


async def test_the_first_night_has_nothing_to_be_held_against(served: Served) -> None:
    assert (await served.night()).verdict is State.OK


async def test_a_change_of_ids_is_changed_with_its_cause_and_the_chats_on_its_first_night(
    served: Served,
) -> None:
    for _ in range(3):
        assert (await served.night()).verdict is State.OK
    served.states = OTHER_TOOLS
    began = served.bench.time.now
    verdict = await served.night()

    assert (verdict.verdict, verdict.cause, verdict.since) == (State.CHANGED, Cause.PROMPT, began)
    assert "1 of 3 chats (one_tool)" in verdict.reason
    assert "ringtrue verdicts accept 'a' --check tokens" in verdict.reason
    assert served.alarms() == [False]


async def test_it_stands_on_later_nights_with_the_same_beginning(served: Served) -> None:
    await served.night()
    served.states = OTHER_TOOLS
    first = await served.night()
    later = [await served.night() for _ in range(2)]

    assert {one.since for one in later} == {first.since}
    assert {one.verdict for one in later} == {State.CHANGED}
    assert served.alarms() == [False]


async def test_it_ends_when_the_old_ids_are_back_and_they_may_change_again(served: Served) -> None:
    await served.night()
    served.states = OTHER_TOOLS
    await served.night()
    served.states = BEFORE
    assert (await served.night()).verdict is State.OK
    assert served.alarms() == [True]
    served.states = OTHER_TOOLS
    assert (await served.night()).verdict is State.CHANGED
    assert served.alarms() == [True, False]


async def test_an_accepted_change_is_the_new_baseline(served: Served) -> None:
    await served.night()
    served.states = OTHER_TOOLS
    await served.night()
    bench = served.bench
    accept(bench.store, "a", Check.TOKENS, by="Ada", why="a new template", at=bench.time.now)

    assert (await served.night()).verdict is State.OK
    served.states = BEFORE
    assert (await served.night()).verdict is State.CHANGED


async def test_a_template_that_was_mended_is_no_alarm(served: Served) -> None:
    served.states, served.own = OTHER_TOOLS, {"one_tool.0c": 0.0}
    await served.night()
    served.states, served.own = BEFORE, {"one_tool.0c": 1.0}

    assert (await served.night()).verdict is State.OK
    assert served.alarms() == []


async def test_it_needs_no_reference_for_the_chats(served: Served) -> None:
    await served.night()
    served.states = dict.fromkeys(BEFORE, 1.0)
    verdict = await served.night()
    assert "3 of 3 chats" in verdict.reason


async def test_a_chat_that_was_not_shown_tonight_is_not_compared(served: Served) -> None:
    await served.night()
    served.states = {"one_user.0a": 11.0}
    assert (await served.night()).verdict is State.OK


async def test_a_chat_that_is_new_or_was_changed_has_nothing_to_be_held_against(served: Served) -> None:
    await served.night()
    served.states = {**BEFORE, "system.ff": 77.0}
    assert (await served.night()).verdict is State.OK


async def test_ids_are_never_held_against_counts(served: Served) -> None:
    served.metric = DEPARTURE
    await served.night()
    served.metric, served.states = IDS, dict.fromkeys(BEFORE, 5.0)
    assert (await served.night()).verdict is State.OK


async def test_other_counts_are_a_change_and_are_called_so(served: Served) -> None:
    served.metric, served.states = DEPARTURE, dict.fromkeys(BEFORE, 0.0)
    await served.night()
    served.states = dict.fromkeys(BEFORE, 4.0)
    assert "other counts of tokens in 3 of 3 chats" in (await served.night()).reason


async def test_a_standing_change_is_said_where_no_chat_was_shown_and_the_curve_was_measured(
    served: Served,
) -> None:
    await served.night()
    served.states = OTHER_TOOLS
    await served.night()
    served.states = {}
    assert "not compared tonight" in (await served.night()).reason
    served.measured = False
    assert (await served.night()).verdict is State.UNKNOWN
