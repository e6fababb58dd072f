"""The part `answers` over an endpoint whose answers are scripted: what is said of each kind of night."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from evals.curve_numbers import Scribe
from evals.parts.answers.findings import NO_BASELINE, with_baseline
from evals.parts.answers.part import AnswersPart
from evals.parts.asker import Asker
from evals.parts.part import Known
from logprob_drift.alarms.night_detector import Rule, detect
from logprob_drift.token_only.lengths import LOG_LENGTH
from probes.answers import USUAL_TOKENS, Want
from ringtrue.errors import ConfigError
from ringtrue.records import (
    Cause,
    Check,
    Exchange,
    Failure,
    FailureKind,
    Finding,
    Observation,
    Party,
    Request,
    Severity,
    State,
)
from ringtrue.verdict import state_of
from tests.unit.evals.tiny import ACME, TinyEndpoint, TinyReference, still_clock

Say = Callable[[Request], dict[str, Any]]
"""The fields of the exchange that answers a request; ``tokens`` is the count."""

TEXT = "An answer like any other, of one sentence, which then comes to its end."
DOWN = Failure(FailureKind.SERVER_ERROR, "HTTP 500", Party.PROVIDER, 500)


def usual(request: Request, *, times: float = 1.0) -> dict[str, Any]:
    """An honest answer: its length varies by 0.3 around what is usual, by the request's own seed."""
    rng = np.random.default_rng(request.sampling.seed)
    want = Want(request.id.rpartition("-")[2])
    return {"tokens": max(1, round(times * USUAL_TOKENS[want] * float(np.exp(rng.normal(0, 0.3)))))}


@dataclass(eq=False)
class Speaking(TinyEndpoint):
    """Uses the tiny model's IDs, and says what it is told to."""

    say: Say = usual

    async def send(self, request: Request) -> Exchange:
        one_token = replace(request, sampling=replace(request.sampling, max_tokens=1))
        exchange = await super().send(one_token)
        if exchange.error is not None:
            return exchange
        given = {"text": TEXT, "finish_reason": "stop", "token_ids": None} | self.say(request)
        tokens, reasoning = given.pop("tokens", 20), given.pop("reasoning_tokens", None)
        usage = exchange.usage and replace(
            exchange.usage, completion_tokens=tokens, reasoning_tokens=reasoning
        )
        return replace(exchange, request=request, usage=given.pop("usage", usage), **given)


@dataclass
class Night:
    """One examination and all that came of it."""

    finding: Finding
    numbers: dict[str, Observation] = field(default_factory=dict)


def part(**settings: Any) -> AnswersPart:
    return AnswersPart(TinyReference(), **({"seed": 0, "night": 1} | settings))


async def examine(
    endpoint: TinyEndpoint, *, of: AnswersPart | None = None, logprobs: State = State.OK
) -> Night:
    of = of or part()
    seen: dict[str, Observation] = {}

    async def emit(observations: Any) -> None:
        seen.update({one.metric: one for one in observations})

    asker = Asker(
        endpoint,
        Scribe(endpoint.spec.name, "r1", of.name),
        seed=0,
        clock=still_clock(),
        emit=emit,
        on_progress=lambda _: None,
        record=None,
    )
    [finding] = await of.examine(asker, Known(20, True, None, logprobs))
    assert finding.check is of.check is Check.OUTPUT
    return Night(finding, seen)


def first(count: int, then: dict[str, Any]) -> Say:
    """Say something else to the first ``count`` questions."""
    return lambda request: usual(request) | (then if int(request.id.split("-")[1]) < count else {})


async def test_an_honest_night_hands_on_its_numbers_and_is_unknown_for_want_of_others() -> None:
    night = await examine(Speaking())

    assert state_of(night.finding) is State.UNKNOWN
    assert (night.finding.code, night.finding.n) == (NO_BASELINE, 60)
    assert night.finding.message == (
        "60 of 60 questions were answered, with 54 tokens in the geometric mean; "
        "no baseline yet: 14 more nights, until then no change could show"
    )
    number = night.numbers["answer_log_length"]
    assert (number.value, number.unit, number.n) == (night.finding.value, "log tokens", 60)
    assert number.value == pytest.approx(np.log(52.4), abs=0.1)
    assert number.probe == "answers"
    shares = ["capped_answers", "empty_answers", "looping_answers", "flooded_answers", "foreign_answers"]
    assert [(night.numbers[name].value, night.numbers[name].n) for name in shares] == [(0, 60)] * 5
    assert "reasoning_share" not in night.numbers  # nobody counted any: that is not a share of 0


async def test_a_past_turns_the_unknown_into_ok_and_states_what_would_show() -> None:
    alone = (await examine(Speaking())).finding
    young = with_baseline(alone, 13, None)
    blind = with_baseline(young, 14, None)
    grown = with_baseline(blind, 20, 0.18)

    assert state_of(young) is state_of(blind) is State.UNKNOWN
    assert young.message.endswith("no baseline yet: 1 more night, until then no change could show")
    assert blind.message.endswith("no baseline yet: 14 nights before, in which no change could show yet")
    assert state_of(grown) is State.OK
    assert grown.message.endswith("held against 20 nights before, where lasting 20% more tokens would show")
    assert (grown.detectable_effect, grown.evidence["nights"]) == (0.18, 20)


@pytest.mark.parametrize(
    ("fault", "code", "cause"),
    [
        ({"text": "Yes" + "!" * 200}, "output.flooded", Cause.NUMERICS),
        ({"text": " a a a", "token_ids": (7,) * 60}, "output.flooded", Cause.NUMERICS),
        ({"text": "The bread 的一是不了 rises."}, "output.foreign", Cause.NUMERICS),
        ({"text": "", "tokens": 80}, "output.empty", Cause.PARSING),
        ({"text": "", "tool_calls": ({"name": "f"},)}, "output.empty", Cause.PARSING),
        ({"text": "", "tokens": 1}, "output.empty", Cause.SAMPLING),
    ],
)
async def test_what_no_model_does_is_worse_on_the_first_night(
    fault: dict[str, Any], code: str, cause: Cause
) -> None:
    finding = (await examine(Speaking(say=first(12, fault)))).finding

    assert state_of(finding) is State.WORSE
    assert (finding.code, finding.cause, finding.party) == (code, cause, Party.PROVIDER)
    assert (finding.value, finding.n) == (0.2, 60)
    assert finding.message.startswith("12 of 60 answers ")
    assert finding.interval is not None
    assert finding.detectable_effect is not None
    assert with_baseline(finding, 100, 0.1) == finding


async def test_a_rare_flood_is_no_verdict_but_is_said() -> None:
    finding = (await examine(Speaking(say=first(2, {"text": "!" * 80})))).finding

    assert state_of(finding) is State.UNKNOWN
    assert "(2 looping, 2 of one sign for ever)" in finding.message


@pytest.mark.parametrize("logprobs", [State.CHANGED, State.WORSE])
async def test_floods_beside_wrong_logprobs_have_their_cause(logprobs: State) -> None:
    finding = (await examine(Speaking(say=first(12, {"text": "!" * 80})), logprobs=logprobs)).finding

    assert finding.cause is Cause.NUMERICS
    assert Cause.SAMPLING not in finding.alternatives


async def test_loops_and_cuts_are_numbers_for_the_series_alone() -> None:
    looping = {"text": "and so on " * 50, "finish_reason": "length", "tokens": 256}
    night = await examine(Speaking(say=first(40, looping)))

    assert night.finding.code == NO_BASELINE
    assert night.numbers["looping_answers"].value == night.numbers["capped_answers"].value == 40 / 60
    assert "40 cut at 256, 40 looping" in night.finding.message
    assert "raise the cap" in night.finding.message


async def test_a_missing_finish_reason_is_not_a_stop() -> None:
    night = await examine(Speaking(say=first(20, {"finish_reason": None})))

    assert night.numbers["capped_answers"].n == 40


async def test_answers_to_another_prompt_are_withheld() -> None:
    finding = (await examine(Speaking(change_ids=lambda ids: ids[1:]))).finding

    assert (finding.code, finding.measured) == ("output.unmeasured", False)
    assert (finding.message, finding.n) == ("withheld: the token IDs differ (see tokens)", 60)


async def test_a_few_answers_to_another_prompt_are_left_out() -> None:
    changed = {8, 9}
    endpoint = Speaking(change_ids=lambda ids: ids[1:] if len(ids) % 30 in changed else ids)
    night = await examine(endpoint)

    left_out = night.finding.evidence["withheld"]
    assert 0 < left_out < 30
    assert f"{left_out} withheld, their token IDs differ" in night.finding.message
    assert night.numbers["empty_answers"].n == 60 - left_out


async def test_prompts_whose_ids_nothing_shows_are_judged_and_may_be_the_cause() -> None:
    endpoint = Speaking(shows_ids=False, say=first(12, {"text": "!" * 80, "usage": None}))
    finding = (await examine(endpoint)).finding

    assert finding.evidence["counted"]
    assert Cause.PROMPT in finding.alternatives


async def test_ids_that_are_known_from_their_count_are_said_to_be() -> None:
    night = await examine(Speaking(shows_ids=False))

    assert night.finding.code == NO_BASELINE
    assert "token IDs taken as equal, the server does not show them" in night.finding.message


async def test_an_endpoint_that_counts_nothing_has_no_lengths() -> None:
    night = await examine(Speaking(shows_counts=False))

    assert state_of(night.finding) is State.UNKNOWN
    assert night.finding.code == "output.unmeasured"
    assert "for 60 answers the server stated no count" in night.finding.message
    assert "answer_log_length" not in night.numbers
    assert night.numbers["empty_answers"].n == 60
    assert with_baseline(night.finding, 100, 0.1) == night.finding


async def test_an_answer_that_is_cut_inside_its_reasoning_is_not_empty() -> None:
    cut = {"text": "", "reasoning": "I think", "tokens": 256, "finish_reason": "length"}
    night = await examine(Speaking(say=lambda _: cut | {"reasoning_tokens": 256}))

    assert night.numbers["empty_answers"].value == 0
    assert night.numbers["reasoning_share"].value == 1
    assert "60 answers were cut at 256 tokens before any text, raise the cap" in night.finding.message


async def test_reasoning_is_counted_apart_from_the_answer() -> None:
    stated = await examine(Speaking(say=lambda _: {"tokens": 40, "reasoning_tokens": 10}))
    shown = await examine(Speaking(say=lambda _: {"tokens": 40, "reasoning": "x" * 10}))

    for night in (stated, shown):
        assert night.numbers["reasoning_share"].value == pytest.approx(0.25)
        assert night.numbers["answer_log_length"].value == pytest.approx(np.log(30))


async def test_a_loop_inside_the_reasoning_is_one() -> None:
    night = await examine(Speaking(say=first(6, {"text": "", "reasoning": "wait, " * 40, "tokens": 256})))

    assert night.numbers["looping_answers"].value == 0.1


async def test_an_endpoint_that_fails_says_why() -> None:
    finding = (await examine(Speaking(fail=lambda _request, _turn: DOWN))).finding

    assert (finding.message, finding.party, finding.measured) == ("HTTP 500", Party.PROVIDER, False)


async def test_an_asking_that_was_given_up_says_how_much_is_missing() -> None:
    finding = (await examine(Speaking(fail=lambda _request, turn: DOWN if turn > 20 else None))).finding

    assert finding.message.endswith(
        "20 lengths are known and 54 are needed (90%): the asking was given up, HTTP 500"
    )


async def test_a_context_too_short_for_an_answer_is_the_callers_to_mend() -> None:
    of = part()
    endpoint = Speaking(spec=replace(ACME, context_length=256))
    finding = (await examine(endpoint, of=of)).finding

    assert of.planned(endpoint.spec) == ()
    assert (finding.party, finding.cause, finding.measured) == (Party.CALLER, Cause.CALLER, False)
    assert "takes 256 tokens" in finding.message


def test_answers_that_do_not_fit_the_model_are_refused() -> None:
    with pytest.raises(ConfigError, match="answers of 5000 tokens do not fit"):
        part(cap=5000)


def test_what_is_planned_is_what_it_costs_at_most() -> None:
    planned = part(count=8, cap=32).planned(ACME)

    assert len(planned) == 8
    for request, tokens in planned:
        assert tokens == len(TinyReference().render(request.messages or ()))
        assert request.sampling.max_tokens == 32


def test_nights_are_comparable_while_they_ask_the_same() -> None:
    basis = part().basis

    assert part(night=2).basis == part(seed=3).basis == basis
    assert len({basis, part(cap=255).basis, part(temperature=1.0).basis, part(count=59).basis}) == 4


async def test_every_endpoint_is_asked_the_same_in_an_order_of_its_own() -> None:
    of = part(count=20)
    one, other = Speaking(), Speaking(spec=replace(ACME, name="other"))
    await examine(one, of=of)
    await examine(other, of=of)

    assert [r.id for r in one.sent] != [r.id for r in other.sent]
    seeds = [{r.id: r.sampling.seed for r in endpoint.sent} for endpoint in (one, other)]
    assert seeds[0] == seeds[1]


async def test_longer_answers_alarm_over_nights_and_honest_ones_do_not() -> None:
    nights, changed = 34, 22
    honest = [(await examine(Speaking(), of=part(night=at))).finding.value for at in range(nights)]
    longer = honest[:changed]
    for at in range(changed, nights):
        night = await examine(Speaking(say=partial(usual, times=1.2)), of=part(night=at))
        longer.append(night.finding.value)
    found = detect(np.array([honest, longer], dtype=np.float64), LOG_LENGTH, Rule(73_000))

    assert found.first[0] == -1
    assert changed <= found.first[1]


async def test_no_finding_holds_text() -> None:
    finding = (await examine(Speaking(say=first(12, {"text": "!" * 80})))).finding

    assert not any(isinstance(value, str) for value in finding.evidence.values())
    assert finding.severity is Severity.FAIL
