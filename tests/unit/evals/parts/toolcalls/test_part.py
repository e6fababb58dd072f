"""The part `toolcalls` over an endpoint whose answers are scripted: what is said of each kind of fault."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from probes.toolcall_suite.loading import load_suite
from probes.toolcall_suite.prompt import Due
from ringtrue.errors import ConfigError
from ringtrue.records import Cause, Check, Failure, FailureKind, Party, Request, Severity, State
from ringtrue.verdict import state_of
from tests.unit.evals.parts.toolcalls.talking import (
    ARGUMENTS,
    Dropping,
    Night,
    Said,
    Talking,
    ToolReference,
    examine,
    part,
    prompt_of,
    sound,
)
from tests.unit.evals.tiny import ACME
from toolcall_validator.schemas import Schemas

DOWN = Failure(FailureKind.SERVER_ERROR, "HTTP 500", Party.PROVIDER, 500)
API = replace(ACME, dialect="openai")


def leaking(request: Request) -> Said:
    """The model writes a sound call, and the server's parser lets it through as text."""
    said = sound(request)
    return replace(said, calls=(), content=said.raw_text(), raw=said.raw_text()) if said.calls else said


def broken(request: Request) -> Said:
    """The model itself writes arguments that lack their end."""
    said = sound(request)
    calls = tuple((name, text[:-1]) for name, text in said.calls)
    return replace(said, calls=calls, finish="tool_calls" if calls else None)


def streamed_only(say: Any) -> Any:
    return lambda request: say(request) if request.stream else sound(request)


def codes(night: Night) -> set[str]:
    return set(night.finding.evidence["codes"])


def test_every_tool_of_the_suite_takes_the_arguments_of_the_tests() -> None:
    schemas = Schemas()
    for prompt in load_suite():
        for tool in prompt.request.tools or ():
            parameters = tool["function"].get("parameters")
            if parameters:
                assert schemas.get(parameters).accepts(ARGUMENTS[tool["function"]["name"]])


async def test_an_endpoint_that_calls_as_asked_is_sound() -> None:
    night = await examine(Talking())

    assert night.findings == (night.finding,)
    assert (night.finding.check, night.finding.code) == (Check.TOOLCALLS, "toolcalls.sound")
    assert state_of(night.finding) is State.OK
    assert night.finding.message.startswith("24 of 24 requests were answered without a fault of the server")
    assert (night.finding.value, night.finding.n) == (0, 24)
    assert night.finding.detectable_effect == 3 / 24
    assert night.finding.evidence["codes"] == {}
    assert len(night.asker.exchanges) == 48  # nothing is asked again where nothing is in doubt
    assert len({exchange.request.session for exchange in night.asker.exchanges}) == 24


@pytest.mark.parametrize("own", [True, False])
async def test_a_parser_that_lets_calls_through_is_the_providers(own: bool) -> None:
    night = await examine(Talking(say=leaking, shows_tokens=own))
    finding = night.finding

    assert state_of(finding) is State.WORSE
    assert (finding.party, finding.cause, finding.alternatives) == (Party.PROVIDER, Cause.PARSING, ())
    assert finding.code.startswith("toolcalls.leak.")
    assert "leak.content" in codes(night)
    assert finding.evidence["raw"]["own" if own else "again"] > 0
    asked_again = [e for e in night.asker.exchanges if e.request.messages is None]
    assert bool(asked_again) is not own


@pytest.mark.parametrize("own", [True, False])
async def test_what_the_model_wrote_wrong_itself_is_not_the_endpoints(own: bool) -> None:
    night = await examine(Talking(say=broken, shows_tokens=own))
    finding = night.finding

    assert {"args.truncated_tail"} <= codes(night)
    assert "the model's own by its raw text: args.truncated_tail" in finding.message
    if own:
        assert (state_of(finding), finding.code) == (State.OK, "toolcalls.sound")
    else:  # of calls that the server forces, a raw completion tells nothing
        assert (state_of(finding), finding.party) == (State.WORSE, Party.UNKNOWN)
        assert "the server forces their form" in finding.message


async def test_without_token_ids_the_party_stays_open_and_the_finding_says_why() -> None:
    finding = (await examine(Talking(say=broken, spec=API, shows_tokens=False, shows_ids=False))).finding

    assert (state_of(finding), finding.code) == (State.WORSE, "toolcalls.args.truncated_tail")
    assert (finding.party, finding.cause) == (Party.UNKNOWN, Cause.UNKNOWN)
    assert finding.alternatives == (Cause.PARSING, Cause.PROMPT, Cause.SAMPLING, Cause.MIXTURE)
    assert "was not settled" in finding.message
    assert finding.message.endswith("the dialect openai gives no token IDs")


async def test_without_a_known_format_the_finding_asks_for_it() -> None:
    reference = Dropping()
    finding = (await examine(Talking(say=broken, reference=reference))).finding

    assert finding.message.endswith("the model's raw format is not known: set reference.tool_format")
    assert finding.party is not Party.PROVIDER


@pytest.mark.parametrize("logprobs", [State.CHANGED, State.WORSE])
async def test_wrong_logprobs_come_first_among_what_may_have_broken_calls(logprobs: State) -> None:
    night = await examine(Talking(say=broken, spec=API, shows_tokens=False), logprobs=logprobs)

    assert night.finding.alternatives[0] is Cause.NUMERICS


async def test_a_fault_of_streams_alone_is_said_to_be_one() -> None:
    night = await examine(Talking(say=streamed_only(leaking)))

    assert "stream.parity" in codes(night)
    assert "streamed only" in night.finding.message
    assert night.finding.evidence["codes"]["leak.content"].keys() == {"streamed"}


async def test_finish_reasons_need_no_raw_text() -> None:
    night = await examine(Talking(say=lambda r: replace(sound(r), finish="stop"), shows_tokens=False))

    assert night.finding.code == "toolcalls.finish.stop_with_call"
    assert (night.finding.party, night.finding.cause) == (Party.PROVIDER, Cause.PARSING)
    assert len(night.asker.exchanges) <= 49


async def test_one_faulty_request_is_no_verdict_but_is_said() -> None:
    hit: list[str] = []

    def say(request: Request) -> Said:
        if prompt_of(request).due is Due.CALL and (not hit or hit == [prompt_of(request).id]):
            hit[:] = [prompt_of(request).id]
            return leaking(request)
        return sound(request)

    finding = (await examine(Talking(say=say))).finding

    assert state_of(finding) is State.OK
    assert finding.message.startswith("23 of 24 requests were answered without a fault of the server; ")
    assert "leak." in finding.message
    assert finding.value == pytest.approx(1 / 24)


async def test_tools_that_the_template_writes_and_the_server_drops_are_the_cause() -> None:
    reference = ToolReference()
    endpoint = Talking(renders=lambda request: reference.render(request.messages or ()))
    finding = (await examine(endpoint)).finding

    assert (finding.code, finding.severity) == ("toolcalls.tools_not_rendered", Severity.FAIL)
    assert (finding.party, finding.cause) == (Party.PROVIDER, Cause.PROMPT)


async def test_faults_of_an_endpoint_without_ids_that_drops_tools_come_from_the_prompt() -> None:
    reference = ToolReference()
    endpoint = Talking(
        say=broken,
        renders=lambda request: reference.render(request.messages or ()),
        shows_tokens=False,
        shows_ids=False,
        spec=API,
    )
    finding = (await examine(endpoint)).finding

    assert (finding.code, finding.cause) == ("toolcalls.args.truncated_tail", Cause.PROMPT)
    assert "the tools are not rendered" in finding.message


async def test_a_template_of_the_model_that_drops_tools_is_found_by_asking_without_them() -> None:
    def uncalled(request: Request) -> Said:
        return (
            replace(sound(request), calls=(), content="I can't.") if sound(request).calls else sound(request)
        )

    night = await examine(Talking(say=uncalled, reference=Dropping()))

    assert night.finding.code == "toolcalls.choice.required_violated"
    assert (night.finding.party, night.finding.cause) == (Party.MODEL, Cause.PROMPT)
    assert "the tools are not rendered: the prompt is as long without them" in night.finding.message
    assert "the model's own template writes no tools into the prompt" in night.finding.message
    assert sum(e.request.id.endswith("/bare") for e in night.asker.exchanges) == 1


async def test_a_sound_endpoint_is_not_blamed_for_a_template_that_drops_tools() -> None:
    night = await examine(Talking(reference=Dropping()))

    assert state_of(night.finding) is State.OK
    assert "the model's own template writes no tools into the prompt" in night.finding.message


async def test_a_template_that_drops_tools_does_not_excuse_the_parser() -> None:
    reference = Dropping()
    night = await examine(Talking(say=leaking, reference=reference), of=part(reference, tool_format="hermes"))

    assert night.finding.code.startswith("toolcalls.leak.")
    assert (night.finding.party, night.finding.cause) == (Party.PROVIDER, Cause.PARSING)


async def test_answers_that_need_no_tools_are_not_spoiled_by_their_absence() -> None:
    def prose(request: Request) -> Said:
        return Said(content="Here it is.") if prompt_of(request).due is Due.JSON else sound(request)

    reference = Dropping()
    _, output = (
        await examine(Talking(say=prose, reference=reference), of=part(reference, count=67))
    ).findings

    assert (output.code, output.cause) == ("output.structured_invalid", Cause.UNKNOWN)


async def test_the_shape_of_output_has_a_finding_of_its_own() -> None:
    def empty(request: Request) -> Said:
        return Said(finish="stop") if prompt_of(request).due is Due.NO_CALL else sound(request)

    night = await examine(Talking(say=empty), of=part(count=67))

    calls, output = night.findings
    assert (calls.check, state_of(calls)) == (Check.TOOLCALLS, State.OK)
    assert (output.check, output.code, state_of(output)) == (Check.OUTPUT, "output.empty", State.WORSE)
    assert output.value == pytest.approx(9 / 67)


async def test_structures_that_are_not_met_are_output() -> None:
    def prose(request: Request) -> Said:
        return Said(content="Here it is.") if prompt_of(request).due is Due.JSON else sound(request)

    _, output = (await examine(Talking(say=prose), of=part(count=67))).findings

    assert (output.code, output.n) == ("output.structured_invalid", 67)


async def test_answers_that_our_cap_cut_are_no_faults_and_no_proof_either() -> None:
    def cut(request: Request) -> Said:
        said = sound(request)
        if not said.calls:
            return said
        name, text = said.calls[0]
        return replace(said, calls=((name, text[:-1]),), finish="length")

    night = await examine(Talking(say=cut))

    assert state_of(night.finding) is State.UNKNOWN
    assert "answers were cut at 256 tokens, raise parts.toolcall_tokens" in night.finding.message
    assert night.finding.evidence["codes"] == {}
    assert "effective_rate" not in night.numbers


async def test_reasoning_up_to_the_cap_is_no_refusal_to_call() -> None:
    def thinking(request: Request) -> Said:
        return Said(finish="length") if sound(request).calls else sound(request)

    finding = (await examine(Talking(say=thinking))).finding

    assert state_of(finding) is State.UNKNOWN
    assert finding.evidence["codes"] == {}


async def test_text_up_to_the_cap_in_place_of_a_required_call_is_a_refusal() -> None:
    def rambling(request: Request) -> Said:
        return Said(content="Let me see, ", finish="length") if sound(request).calls else sound(request)

    finding = (await examine(Talking(say=rambling))).finding

    assert (state_of(finding), finding.code) == (State.WORSE, "toolcalls.choice.required_violated")
    assert finding.evidence["codes"].keys() == {"choice.required_violated"}


async def test_a_call_that_leaks_until_the_cap_is_a_fault_all_the_same() -> None:
    def until(request: Request) -> Said:
        said = sound(request)
        if not said.calls:
            return said
        text = said.raw_text()[:30]
        return Said(content=text, raw=text, finish="length")

    night = await examine(Talking(say=until))

    assert (state_of(night.finding), night.finding.code) == (
        State.WORSE,
        "toolcalls.choice.required_violated",  # to leave the mark open was the model's own
    )
    assert {"leak.unclosed", "choice.required_violated"} <= codes(night)


async def test_broken_schemas_are_the_callers() -> None:
    broken_schema = {"type": "object", "properties": {"a": {"type": "strange"}}}
    tool = {"type": "function", "function": {"name": "ping", "parameters": broken_schema}}
    prompts = [
        replace(prompt, request=replace(prompt.request, tools=(tool,)))
        for prompt in load_suite()
        if prompt.request.tools
    ]
    finding = (await examine(Talking(), of=part(suite=prompts))).finding

    assert (finding.party, finding.cause, finding.measured) == (Party.CALLER, Cause.CALLER, False)
    assert finding.message.startswith("the schemas of all requests that were answered are broken")


async def test_an_endpoint_that_fails_says_why() -> None:
    finding = (await examine(Talking(fail=lambda _request, _turn: DOWN))).finding

    assert (finding.message, finding.party, finding.measured) == ("HTTP 500", Party.PROVIDER, False)


async def test_an_asking_that_was_given_up_says_how_much_is_missing() -> None:
    finding = (await examine(Talking(fail=lambda _request, turn: DOWN if turn > 10 else None))).finding

    assert state_of(finding) is State.UNKNOWN
    assert finding.message.startswith(
        "5 requests were answered and 12 are needed; the asking was given up, HTTP 500"
    )


async def test_refused_formats_leave_the_rest_to_be_judged() -> None:
    refused = Failure(FailureKind.REFUSED, "HTTP 400: no response_format", Party.CALLER, 400)
    endpoint = Talking(fail=lambda request, _turn: refused if request.response_format else None)
    finding = (await examine(endpoint)).finding

    assert state_of(finding) is State.OK
    assert finding.n < 24


async def test_too_few_requests_are_unknown() -> None:
    finding = (await examine(Talking(), of=part(count=4))).finding

    assert state_of(finding) is State.UNKNOWN
    assert "set parts.toolcalls to 8 or more" in finding.message


async def test_a_context_too_short_for_any_request_is_the_callers_to_mend() -> None:
    of = part()
    endpoint = Talking(spec=replace(ACME, context_length=256))
    finding = (await examine(endpoint, of=of)).finding

    assert not of.planned(endpoint.spec)
    assert (finding.party, finding.cause, finding.measured) == (Party.CALLER, Cause.CALLER, False)


async def test_all_that_is_sent_was_planned() -> None:
    of = part()
    planned = {request.id: tokens for request, tokens in of.planned(ACME)}
    night = await examine(Talking(say=broken, shows_tokens=False), of=of)

    sent = [exchange.request.id for exchange in night.asker.exchanges]
    assert len(sent) == len(set(sent))
    assert {one for one in sent if not one.endswith("/bare")} <= planned.keys()
    assert len(sent) <= len(planned)
    for exchange in night.asker.exchanges:
        assert len(exchange.prompt_token_ids or ()) <= planned.get(exchange.request.id, max(planned.values()))


def test_the_basis_is_that_of_all_nights_of_one_suite() -> None:
    assert part(night=1).basis == part(night=2).basis
    assert part().basis != part(suite=load_suite()[:30]).basis
    assert part().basis != part(count=12).basis
    assert part().basis != part(cap=100).basis
    assert part().basis != part(tool_format="kimi").basis


def test_a_format_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigError, match="klingon") as caught:
        part(tool_format="klingon")
    assert caught.value.where == "reference.tool_format"


def test_requests_that_do_not_fit_the_model_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match="do not fit"):
        part(cap=4000)


async def test_no_content_is_kept() -> None:
    night = await examine(Talking(say=leaking))

    assert "Oslo" not in json.dumps([finding.message for finding in night.findings])
    assert "Oslo" not in json.dumps(dict(night.finding.evidence))
