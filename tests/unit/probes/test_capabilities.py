from __future__ import annotations

from typing import Any

import pytest

from probes.capabilities import Capabilities, discover, list_models
from tests.unit.probes.model_endpoint import ModelEndpoint


async def discovered(**knobs: Any) -> Capabilities:
    endpoint = ModelEndpoint(**knobs)
    found = await discover(endpoint)
    assert found.requests == len(endpoint.sent) + len(endpoint.called) <= 26
    return found


async def test_an_endpoint_that_can_do_everything_is_described_so() -> None:
    found = await discovered()
    assert (found.models, found.context_length, found.largest_k) == (("tiny",), 512, 20)
    assert [feature.name for feature in found.features if feature.available is not True] == []


@pytest.mark.parametrize(
    ("refused", "features"),
    [
        ("completions", {"completions", "token-ID prompts", "echo", "prompt logprobs"}),
        ("ids", {"token-ID prompts"}),
        ("stream", {"stream", "stream usage"}),
        ("tools", {"tools"}),
        ("echo", {"echo"}),
        ("tokenize", {"tokenize", "rendered IDs"}),
    ],
)
async def test_what_is_refused_is_not_available_and_says_why(refused: str, features: set[str]) -> None:
    found = await discovered(refuses=frozenset({refused}))
    missing = [feature for feature in found.features if feature.available is False]
    assert {feature.name for feature in missing} == features
    assert all(feature.detail for feature in missing)


async def test_a_dialect_without_ids_has_neither_ids_nor_prompt_logprobs() -> None:
    found = await discovered(dialect="openai")
    assert [feature.name for feature in found.features if not feature.available] == [
        "token IDs",
        "prompt logprobs",
        "rendered IDs",
    ]


@pytest.mark.parametrize(
    ("fields", "dialect"),
    [
        ({"max_model_len": 512, "owned_by": "vllm"}, "vllm"),
        ({"max_model_len": 512, "owned_by": "sglang"}, "sglang"),
        ({"owned_by": "llamacpp", "meta": {}}, "llama_cpp"),
        ({"owned_by": "me"}, "openai"),
        ({}, "openai"),
    ],
)
async def test_a_server_is_known_by_what_it_says_of_its_model(fields: dict[str, Any], dialect: str) -> None:
    listing = await list_models(ModelEndpoint(models=({"id": "tiny", **fields},)))
    assert listing.dialect == dialect


@pytest.mark.parametrize("largest", [1, 5, 20, 60, 100])
async def test_the_largest_k_is_found_between_the_steps_of_the_ladder(largest: int) -> None:
    found = await discovered(largest_k=largest)
    assert found.largest_k is not None
    tolerance = {60: 5, 100: 0}.get(largest, 0)
    assert largest - tolerance <= found.largest_k <= largest


async def test_a_server_that_gives_fewer_than_asked_is_believed_by_what_it_gives() -> None:
    assert (await discovered(largest_k=7, clamps=True)).largest_k == 7


async def test_no_logprobs_are_a_largest_k_of_none_and_not_of_zero() -> None:
    found = await discovered(gives_logprobs=False)
    assert found.largest_k is None
    assert found.feature("logprobs").available is False


async def test_tools_that_leave_the_prompt_as_it_was_are_dropped_by_the_template() -> None:
    feature = (await discovered(template_drops_tools=True)).feature("tools")
    assert feature.available is False
    assert "the template drops them" in feature.detail
