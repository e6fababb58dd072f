"""The first request: can this endpoint be measured at all, and with how many logprobs?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringtrue.endpoint import Endpoint, Reference
from ringtrue.records import Exchange, Failure, FailureKind, Request

LADDER = (20, 10, 5, 1)
"""Numbers of logprobs at which servers are known to stop; tried downwards when one is refused."""

AskWithK = Callable[[int | None], Request]
"""Makes the request for a number of logprobs, or for none."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How it went.

    ``k`` is the number of logprobs the endpoint gives, ``None`` when it gives
    none or was not reached. ``asked`` is the number that it accepts to be asked
    for, ``None`` where it refuses every one. ``exchanges`` holds all that was
    tried, the last one being the answer when ``failure`` is ``None``.
    """

    k: int | None
    asked: int | None
    exchanges: tuple[Exchange, ...]
    failure: Failure | None


async def preflight(endpoint: Endpoint, ask: AskWithK, k: int) -> Opening:
    """Ask one prompt for ``k`` logprobs, for fewer while they are refused, and at last for none."""
    tried: list[Exchange] = []
    for fewer in (k, *(step for step in LADDER if step < k), None):
        exchange = await endpoint.send(ask(fewer))
        tried.append(exchange)
        if exchange.error is None:
            return Opening(fewer if exchange.top_logprobs else None, fewer, tuple(tried), None)
        if exchange.error.kind is not FailureKind.CAPABILITY_REFUSED:
            break
    return Opening(None, k, tuple(tried), tried[-1].error)


async def promised_length(endpoint: Endpoint, reference: Reference) -> int:
    """Return the context length, in tokens, that the endpoint promises.

    What the configuration says, else what ``/v1/models`` says, else the
    model's own; never more than the model's own.
    """
    spec = endpoint.spec
    promised = spec.context_length
    if promised is None:
        reply = await endpoint.call("GET", "/v1/models")
        listed = reply.body.get("data") if isinstance(reply.body, dict) else None
        for entry in listed if isinstance(listed, list) else []:
            if isinstance(entry, dict) and entry.get("id") == spec.model:
                length = entry.get("max_model_len")
                promised = length if isinstance(length, int) and length > 0 else None
    own = reference.context_length
    return own if promised is None else min(promised, own)
