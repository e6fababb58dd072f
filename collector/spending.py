"""What a cycle will cost, said and checked before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

from evals.plan import ExaminePlan
from evals.preflight import LADDER
from evals.truth import Truth
from probes.budget import Budget, Cost, CountTokens, cost_at_most, cost_of_attempt, prompt_tokens_at_most
from probes.context_curve import to_request
from probes.dialects import dialect_named
from probes.self_test import MOST_REQUESTS
from ringtrue.config import BudgetSettings
from ringtrue.errors import BudgetError
from ringtrue.records import EndpointSpec, Request, Sampling

# As dear as any request of the self-test.
_SELF_TEST = Request("self-test", ({"role": "user", "content": "x" * 64},), sampling=Sampling(max_tokens=2))


def counted_by(truth: Truth) -> CountTokens:
    """Return a count that is exact for the prompts of ``truth`` and a bound for any other request."""

    def count(request: Request) -> int:
        expected = truth.expected.get(request.id)
        return prompt_tokens_at_most(request) if expected is None else len(expected)

    return count


def most_it_can_cost(specs: Sequence[EndpointSpec], truth: Truth, plan: ExaminePlan) -> Cost:
    """Return what the cycle costs if every request is retried as often as it may be.

    That is every prompt and the self-test at every endpoint, and the requests
    that find out how many logprobs it gives, which are refused and so not billed.
    """
    count = counted_by(truth)
    tests = [(spec, _SELF_TEST) for spec in specs if plan.self_test for _ in range(MOST_REQUESTS)]
    refused = Cost(requests=len(LADDER) * len(specs))
    return cost_at_most([*_items(specs, truth, plan), *tests], count) + refused


def budget_for(
    limits: BudgetSettings, specs: Sequence[EndpointSpec], truth: Truth, plan: ExaminePlan
) -> Budget:
    """Return the budget that is enforced while the cycle runs.

    Raises:
        BudgetError: Even without a single retry it would not suffice.
    """
    count = counted_by(truth)
    budget = Budget(**limits.model_dump(), count=count)
    without_retries = Cost()
    for spec, request in _items(specs, truth, plan):
        without_retries += cost_of_attempt(spec, request, count)
    if (broken := budget.exceeded_by(without_retries)) is not None:
        raise BudgetError(
            f"needs {without_retries.requests:,} requests and {without_retries.tokens:,} tokens "
            f"without a single retry, which is beyond {broken}; nothing was sent",
            where="budget",
            remedy="Raise the limit, or ask less in probe.buckets",
        )
    return budget


def _items(
    specs: Sequence[EndpointSpec], truth: Truth, plan: ExaminePlan
) -> list[tuple[EndpointSpec, Request]]:
    return [
        (spec, to_request(prompt, k=plan.k, dialect=dialect_named(spec.dialect), stream=plan.stream))
        for spec in specs
        for prompt in truth.prompts
    ]
