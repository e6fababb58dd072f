"""Asks a live endpoint for the token IDs of chats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from evals.tokens.chats import NamedChat
from probes.budget import cost_at_most, render_cost
from probes.capabilities import list_models
from probes.dialects import dialect_named
from probes.http_endpoint import connect
from probes.prompt_ids import Shown, show
from ringtrue.endpoint import Endpoint
from ringtrue.errors import MeasureError
from ringtrue.records import EndpointSpec, FailureKind

AUTO = "auto"
_NO_SUCH_ROUTE = frozenset({FailureKind.NOT_FOUND, FailureKind.REFUSED})  # the others concern every route


async def introduced(spec: EndpointSpec, env: Mapping[str, str]) -> EndpointSpec:
    """Return ``spec`` with the model and the dialect that it leaves open: no name, and ``auto``.

    Raises:
        MeasureError: the server can't be talked to, or lists no model.
        ConfigError: the specification is wrong; see ``connect``.
    """
    asked = replace(spec, dialect="openai") if spec.dialect == AUTO else spec
    if asked.model and spec.dialect != AUTO:
        return spec
    async with aclosing(connect(asked, env)) as endpoint:
        listing = await list_models(endpoint)
    if listing.error is not None and listing.error.kind not in _NO_SUCH_ROUTE:
        raise MeasureError(listing.error.message)
    model = spec.model or next(iter(listing.models), "")
    if not model or not model.isprintable():
        what = "a model whose name can't be printed" if model else "no model"
        raise MeasureError(f"the server lists {what}", where=spec.name, remedy="Name one with --model")
    return replace(spec, model=model, dialect=listing.dialect if spec.dialect == AUTO else spec.dialect)


def cost_line(spec: EndpointSpec, chats: Sequence[NamedChat]) -> str:
    """Return what asking for these chats costs at most: each by every way that the dialect has."""
    ways = len(dialect_named(spec.dialect).ways)
    return render_cost(cost_at_most((spec, named.request) for named in chats for _ in range(ways)))


async def ask_chats(
    endpoint: Endpoint, chats: Sequence[NamedChat], on_done: Callable[[], None]
) -> Mapping[str, tuple[Shown, ...]]:
    """Return what the endpoint shows of each chat's prompt, by the chat's name.

    As many chats at once as the endpoint's limits let be in flight.
    """
    shown: dict[str, tuple[Shown, ...]] = {}
    waiting = iter(chats)

    async def ask_in_turn() -> None:
        for named in waiting:
            shown[named.name] = await show(endpoint, named.chat, id=named.name)
            on_done()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(endpoint.spec.limits.max_in_flight, len(chats))):
                group.create_task(ask_in_turn())
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return {named.name: shown[named.name] for named in chats}
