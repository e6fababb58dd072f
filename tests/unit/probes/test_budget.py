from __future__ import annotations

import pytest

from probes.budget import (
    Budget,
    Cost,
    cost_at_most,
    cost_of_attempt,
    prompt_tokens_at_most,
    render_cost,
)
from ringtrue.records import EndpointSpec, Limits, Request, Sampling, Usage

PRICED = EndpointSpec("paid", "http://h", "m", price_in=1.0, price_out=4.0, limits=Limits(max_attempts=2))
OURS = EndpointSpec("ours", "http://h", "m", limits=Limits(max_attempts=1), context_length=4096)
TEN = Request(id="t", prompt_token_ids=tuple(range(10)), sampling=Sampling(max_tokens=5))


def test_the_most_a_run_can_cost_counts_every_retry() -> None:
    assert cost_at_most([(PRICED, TEN), (OURS, TEN)]) == Cost(3, 30, 15, 2 * 30e-6, ("ours",))


def test_no_prices_are_no_dollars_and_not_zero_dollars() -> None:
    assert cost_at_most([(OURS, TEN)]).dollars is None
    assert "no price known for ours" in render_cost(cost_at_most([(OURS, TEN)]))


def test_a_prompt_never_has_more_tokens_than_bytes() -> None:
    assert prompt_tokens_at_most(TEN) == 10
    assert prompt_tokens_at_most(Request(id="p", prompt="学而")) == 6
    chat = Request(id="c", messages=({"role": "user", "content": "学而"},))
    assert prompt_tokens_at_most(chat) > 6


def test_a_request_without_max_tokens_may_fill_the_context() -> None:
    request = Request(id="r", prompt="x", sampling=Sampling(max_tokens=None))
    assert cost_of_attempt(OURS, request).tokens_out == 4096


@pytest.mark.parametrize(
    ("cost", "line"),
    [
        (
            Cost(1200, 1234567, 1200, 3.456, ()),
            "At most 1,200 requests, 1,234,567 tokens in, 1,200 tokens out, $3.46, retries included.",
        ),
        (
            Cost(1, 2, 3, 0.001, ("a", "b")),
            "At most 1 requests, 2 tokens in, 3 tokens out, under $0.01 (no price known for a, b), "
            "retries included.",
        ),
    ],
)
def test_the_line_before_sending_says_requests_tokens_and_dollars(cost: Cost, line: str) -> None:
    assert render_cost(cost) == line


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(max_requests=2), "max_requests = 2"),
        (Budget(max_tokens=30), "max_tokens = 30"),
        (Budget(max_dollars=60e-6), "max_dollars = 6e-05"),
    ],
    ids=["requests", "tokens", "dollars"],
)
def test_what_exceeds_a_limit_is_not_reserved(budget: Budget, limit: str) -> None:
    once = cost_of_attempt(PRICED, TEN)
    assert budget.reserve(PRICED, TEN) == once
    assert budget.reserve(PRICED, TEN) == once
    assert budget.reserve(PRICED, TEN) is None
    assert budget.exceeded_by(once) == limit
    assert budget.spent.requests == 2


def test_a_settled_attempt_gives_back_what_it_did_not_use() -> None:
    budget = Budget(max_tokens=30, count=lambda request: len(request.prompt_token_ids or ()))
    reserved = budget.reserve(PRICED, TEN)
    assert reserved is not None
    budget.settle(PRICED, reserved, Usage(prompt_tokens=4, completion_tokens=1))
    assert budget.spent == Cost(1, 4, 1, pytest.approx(8e-6), ())
    assert budget.reserve(PRICED, TEN) is not None


def test_an_attempt_whose_usage_is_unknown_stays_at_its_dearest() -> None:
    budget = Budget()
    reserved = budget.reserve(PRICED, TEN)
    assert reserved is not None
    budget.settle(PRICED, reserved, None)
    budget.settle(PRICED, reserved, Usage(prompt_tokens=4))
    assert budget.spent == reserved
