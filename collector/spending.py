"""What a cycle will cost, said and checked before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

from evals.preflight import LADDER
from evals.questions import Questions
from probes.budget import Budget, Cost, CountTokens, cost_at_most, cost_of_attempt, prompt_tokens_at_most
from probes.self_test import MOST_REQUESTS
from ringtrue.config import BudgetSettings
from ringtrue.errors import BudgetError
from ringtrue.records import EndpointSpec, Request, Sampling

# As dear as any request of the self-test.
_SELF_TEST = Request("self-test", ({"role": "user", "content": "x" * 64},), sampling=Sampling(max_tokens=2))


def counted_by(questions: Questions, specs: Sequence[EndpointSpec]) -> CountTokens:
    """Return a count that is exact for the requests of ``questions`` and a bound for any other."""
    known = {request.id: tokens for spec in specs for request, tokens in questions.of(spec)}

    def count(request: Request) -> int:
        tokens = known.get(request.id)
        return prompt_tokens_at_most(request) if tokens is None else tokens

    return count


def most_it_can_cost(specs: Sequence[EndpointSpec], questions: Questions) -> Cost:
    """Return what the cycle costs if every request is retried as often as it may be.

    That is every question and the self-test at every endpoint, and the requests
    that find out how many logprobs it gives, which are refused and so not billed.
    """
    count = counted_by(questions, specs)
    tests = [(spec, _SELF_TEST) for spec in specs if questions.plan.self_test for _ in range(MOST_REQUESTS)]
    refused = Cost(requests=len(LADDER) * len(specs))
    return cost_at_most([*_items(specs, questions), *tests], count) + refused


def budget_for(limits: BudgetSettings, specs: Sequence[EndpointSpec], questions: Questions) -> Budget:
    """Return the budget that is enforced while the cycle runs.

    Raises:
        BudgetError: Even without a single retry it would not suffice.
    """
    count = counted_by(questions, specs)
    budget = Budget(**limits.model_dump(), count=count)
    without_retries = Cost()
    for spec, request in _items(specs, questions):
        without_retries += cost_of_attempt(spec, request, count)
    if (broken := budget.exceeded_by(without_retries)) is not None:
        raise BudgetError(
            f"needs {without_retries.requests:,} requests and {without_retries.tokens:,} tokens "
            f"without a single retry, which is beyond {broken}; nothing was sent",
            where="budget",
            remedy="Raise the limit, or ask less in probe.buckets and [parts]",
        )
    return budget


def _items(specs: Sequence[EndpointSpec], questions: Questions) -> list[tuple[EndpointSpec, Request]]:
    return [(spec, request) for spec in specs for request, _ in questions.of(spec)]
