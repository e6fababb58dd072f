"""Counts of prompt tokens: asked of an endpoint, or read from a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from probes.budget import cost_at_most, render_cost
from probes.clock import Clock
from probes.http_endpoint import connect
from probes.runner import run
from ringtrue.errors import UsageError
from ringtrue.progress import ProgressReport
from ringtrue.records import EndpointSpec, Exchange, Request, Sampling
from tokenizer_checks.counts.asks import Ask
from tokenizer_checks.side_by_side import printable
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.spellings import on_wire

_REMEDY = 'Write {"counts": {"base": 31, ...}} as `ringtrue tokens infer --format json` does'


@dataclass(frozen=True, slots=True)
class Counted:
    """Prompt tokens by the request's name, and why others have none, in words."""

    counts: Mapping[str, int]
    unmeasured: Mapping[str, str] = field(default_factory=dict)


def requests_of(asks: Sequence[Ask], repetitions: int) -> list[Request]:
    """Return the requests, all once and then all again; each is answered by one token at most."""
    return [_request(ask, turn) for turn in range(repetitions) for ask in asks]


async def ask_counts(
    spec: EndpointSpec,
    asks: Sequence[Ask],
    repetitions: int,
    *,
    env: Mapping[str, str],
    clock: Clock,
    progress: ProgressReport,
) -> Counted:
    """Return what an endpoint counts. What the run may cost is said before anything is sent.

    Raises:
        ConfigError: the endpoint's description is wrong.
    """
    requests = requests_of(asks, repetitions)
    progress.say(render_cost(cost_at_most((spec, request) for request in requests)))
    progress.begin(spec.name, len(requests))
    async with aclosing(connect(spec, env, clock=clock)) as endpoint:
        items = [(endpoint, request) for request in requests]
        answers = run(items, clock=clock, on_exchange=lambda _: progress.advance(spec.name))
        return await _collected(asks, answers)


async def _collected(asks: Sequence[Ask], answers: AsyncIterator[Exchange]) -> Counted:
    by_name: dict[str, list[Exchange]] = {ask.name: [] for ask in asks}
    async for exchange in answers:
        by_name[exchange.id.partition("#")[0]].append(exchange)
    return settled({name: [_told(one) for one in answered] for name, answered in by_name.items()})


def settled(told: Mapping[str, Sequence[int | str]]) -> Counted:
    """Return the counts of requests that were counted, and always alike.

    ``told`` holds for each request what every repetition gave: a count, or why
    there is none. A server that counts the same request differently counts
    something else than the prompt, for example what its cache had not: such a
    request is unmeasured.
    """
    counts: dict[str, int] = {}
    unmeasured: dict[str, str] = {}
    for name, answers in told.items():
        seen = sorted({answer for answer in answers if isinstance(answer, int)})
        if len(seen) == 1:
            counts[name] = seen[0]
        elif seen:
            unmeasured[name] = f"the same request was counted as {' and as '.join(map(str, seen))} tokens"
        else:
            unmeasured[name] = next((str(answer) for answer in answers), "was not asked")
    return Counted(counts, unmeasured)


def read_counts(path: Path) -> Counted:
    """Return the counts of a file: ``{"counts": {name: count}}``, or that object alone.

    A list of counts are those of repetitions.

    Raises:
        UsageError: the file can't be read, or holds something else.
    """
    try:
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except orjson.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error}", where=str(path), remedy=_REMEDY) from error
    held = content.get("counts", content) if isinstance(content, dict) else None
    if not isinstance(held, dict) or not held:
        raise UsageError("holds no counts", where=str(path), remedy=_REMEDY)
    return settled({name: _repeated(value, f"{path}, {name}") for name, value in held.items()})


def _repeated(value: Any, where: str) -> list[int | str]:
    values = value if isinstance(value, list) else [value]
    if not values or not all(type(count) is int and count >= 0 for count in values):
        raise UsageError("is no count of tokens", where=where, remedy=_REMEDY)
    return values


def _request(ask: Ask, turn: int) -> Request:
    chat = on_wire(Chat(ask.messages, ask.tools or None))
    return Request(
        id=f"{ask.name}#{turn}",
        messages=chat.messages,
        tools=chat.tools,
        sampling=Sampling(temperature=0.0, max_tokens=1),
        extra=ask.extra,
    )


def _told(exchange: Exchange) -> int | str:
    if exchange.error is not None:
        return printable(exchange.error.message)
    count = exchange.usage.prompt_tokens if exchange.usage else None
    return "the answer tells no count of prompt tokens" if count is None else count
