from __future__ import annotations

import math
from typing import Any

import pytest

from probes.self_test import MOST_REQUESTS, Scaling, SelfTest, self_test
from probes.self_test_checks import judge_values
from ringtrue.records import Position, TokenLogprob
from tests.unit.probes.model_endpoint import ModelEndpoint


async def result_of(**knobs: Any) -> SelfTest:
    endpoint = ModelEndpoint(**knobs)
    result = await self_test(endpoint, k=20)
    assert result.requests == len(endpoint.sent) <= MOST_REQUESTS
    assert {request.session for request in endpoint.sent} == {"self-test"}
    return result


def outcome(result: SelfTest, name: str) -> bool | None:
    (check,) = (check for check in result.checks if check.name == name)
    return check.passed


async def test_an_honest_endpoint_is_trusted() -> None:
    result = await result_of()
    assert (result.trusted, result.reasons, result.scaling) == (True, (), Scaling.RAW)
    assert [check.name for check in result.checks if check.passed is not True] == []


async def test_the_noise_of_half_precision_is_forgiven() -> None:
    assert (await result_of(noise=0.05)).trusted is True


@pytest.mark.parametrize(
    ("knobs", "check"),
    [
        ({"zero": True}, "all zero"),
        ({"sentinels": True}, "sentinels"),
        ({"too_likely": 1.5}, "sum"),
        ({"noise": 0.5}, "replay"),
        ({"k_changes_values": True}, "k"),
        ({"decode_shift": 0.5}, "prefill and decode"),
    ],
)
async def test_each_fault_fails_its_check_and_the_reason_names_it(knobs: dict[str, Any], check: str) -> None:
    result = await result_of(**knobs)
    assert result.trusted is False
    assert outcome(result, check) is False
    assert any(reason.startswith(f"{check}: ") for reason in result.reasons)


async def test_logprobs_divided_by_the_temperature_are_called_processed_and_trusted() -> None:
    result = await result_of(processed=True)
    assert (result.trusted, result.scaling) == (True, Scaling.PROCESSED)


async def test_without_token_ids_prefill_is_tested_by_text() -> None:
    assert outcome(await result_of(dialect="openai"), "prefill and decode") is True
    assert outcome(await result_of(dialect="openai", decode_shift=0.5), "prefill and decode") is False


@pytest.mark.parametrize(
    ("refused", "check"), [("completions", "prefill and decode"), ("hot", "temperature")]
)
async def test_what_cannot_be_tested_is_unknown_and_does_not_count_against_it(
    refused: str, check: str
) -> None:
    result = await result_of(refuses=frozenset({refused}))
    assert outcome(result, check) is None
    assert result.trusted is True


async def test_without_logprobs_trust_is_unknown_with_the_reason() -> None:
    assert await result_of(gives_logprobs=False) == SelfTest(
        None, ("the answer has no logprobs",), None, (), 1
    )
    assert (await result_of(refuses=frozenset({"chat"}))).reasons == ("refused here",)


@pytest.mark.parametrize(
    ("values", "failed"),
    [
        ([-0.1, -3.0], []),
        ([-0.1, math.nan], ["sentinels"]),
        ([0.5, -3.0], ["sentinels", "sum"]),
        ([-0.1, -0.2], ["sum"]),
        ([0.0], []),
        ([0.0, 0.0], ["all zero", "sum"]),
    ],
)
def test_one_position_is_judged_by_itself(values: list[float], failed: list[str]) -> None:
    top = tuple(TokenLogprob(str(at), value) for at, value in enumerate(values))
    checks = judge_values(Position(top[0], top))
    assert [check.name for check in checks if not check.passed] == failed


def test_strings_that_several_tokens_share_are_not_counted_twice() -> None:
    top = (TokenLogprob("\ufffd", -0.1), TokenLogprob("\ufffd", -0.2), TokenLogprob("a", -3.0))
    assert all(check.passed for check in judge_values(Position(top[0], top)))
