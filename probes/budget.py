"""What a run may cost, stated before it is sent and enforced while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson

from ringtrue.records import EndpointSpec, Request, Usage

CountTokens = Callable[[Request], int]

_UNSTATED_OUTPUT = 8192  # tokens, for a request without max_tokens at an endpoint of unknown context


@dataclass(frozen=True, slots=True)
class Cost:
    """Requests, tokens and dollars.

    ``dollars`` covers the endpoints that have prices and is ``None`` when none
    has; ``unpriced`` names the others.
    """

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float | None = None
    unpriced: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens in both directions."""
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Cost) -> Cost:
        known = [dollars for dollars in (self.dollars, other.dollars) if dollars is not None]
        return Cost(
            self.requests + other.requests,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            sum(known) if known else None,
            tuple(sorted({*self.unpriced, *other.unpriced})),
        )


def prompt_tokens_at_most(request: Request) -> int:
    """A bound on the prompt's tokens without a tokenizer: the IDs, or a token a byte.

    No tokenizer makes more than one token of a byte; role markers of a template
    are covered by the JSON around each message.
    """
    if request.prompt_token_ids is not None:
        return len(request.prompt_token_ids)
    if request.prompt is not None:
        return len(request.prompt.encode("utf-8", "replace"))
    asked = {"messages": request.messages, "tools": request.tools}
    return len(orjson.dumps(asked))


def cost_of_attempt(spec: EndpointSpec, request: Request, count: CountTokens = prompt_tokens_at_most) -> Cost:
    """The most that sending ``request`` once can cost. ``count`` gives the prompt's tokens."""
    asked = request.sampling.max_tokens
    return _priced(
        spec, count(request), asked if asked is not None else spec.context_length or _UNSTATED_OUTPUT
    )


def cost_at_most(
    items: Iterable[tuple[EndpointSpec, Request]], count: CountTokens = prompt_tokens_at_most
) -> Cost:
    """The most that a run can cost, every request retried as often as its endpoint's limits let it."""
    total = Cost()
    for spec, request in items:
        once = cost_of_attempt(spec, request, count)
        tries = spec.limits.max_attempts
        dollars = None if once.dollars is None else once.dollars * tries
        total += Cost(tries, once.tokens_in * tries, once.tokens_out * tries, dollars, once.unpriced)
    return total


def render_cost(cost: Cost) -> str:
    """The line printed before a run is sent."""
    parts = [
        f"{cost.requests:,} requests",
        f"{cost.tokens_in:,} tokens in",
        f"{cost.tokens_out:,} tokens out",
    ]
    if cost.dollars is not None:
        parts.append(f"${cost.dollars:,.2f}" if cost.dollars >= 0.01 or not cost.dollars else "under $0.01")
    unpriced = f" (no price known for {', '.join(cost.unpriced)})" if cost.unpriced else ""
    return f"At most {', '.join(parts)}{unpriced}, retries included."


class Budget:
    """Limits that hold while a run goes on, shared by all of its endpoints.

    Invariant: what was spent and what is under way, taken at its dearest, never
    exceeds a limit. An attempt reserves its highest cost, and gives back what
    it did not use when it is settled. Endpoints without prices spend no
    dollars; ``None`` is no limit.
    """

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        max_dollars: float | None = None,
        count: CountTokens = prompt_tokens_at_most,
    ) -> None:
        self._limits = (max_requests, max_tokens, max_dollars)
        self._count = count
        self._committed = Cost()

    @property
    def spent(self) -> Cost:
        """What was spent so far, attempts under way at their highest cost."""
        return self._committed

    def reserve(self, spec: EndpointSpec, request: Request) -> Cost | None:
        """Reserve one attempt's highest cost and return it, or ``None`` when the budget has no room."""
        cost = cost_of_attempt(spec, request, self._count)
        if self.exceeded_by(cost) is not None:
            return None
        self._committed += cost
        return cost

    def settle(self, spec: EndpointSpec, reserved: Cost, usage: Usage | None) -> None:
        """Replace a reservation by what the server says was used, where it says so."""
        if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return
        used = _priced(spec, usage.prompt_tokens, usage.completion_tokens)
        dollars = -reserved.dollars if reserved.dollars is not None else None
        self._committed += Cost(-1, -reserved.tokens_in, -reserved.tokens_out, dollars) + used

    def exceeded_by(self, cost: Cost) -> str | None:
        """The limit that ``cost`` on top of what is spent would break, as a person reads it."""
        most_requests, most_tokens, most_dollars = self._limits
        after = self._committed + cost
        if most_requests is not None and after.requests > most_requests:
            return f"max_requests = {most_requests}"
        if most_tokens is not None and after.tokens > most_tokens:
            return f"max_tokens = {most_tokens}"
        if most_dollars is not None and (after.dollars or 0.0) > most_dollars:
            return f"max_dollars = {most_dollars:g}"
        return None


def _priced(spec: EndpointSpec, tokens_in: int, tokens_out: int) -> Cost:
    if spec.price_in is None and spec.price_out is None:
        return Cost(1, tokens_in, tokens_out, None, (spec.name,))
    dollars = (tokens_in * (spec.price_in or 0.0) + tokens_out * (spec.price_out or 0.0)) / 1e6
    return Cost(1, tokens_in, tokens_out, dollars)
