"""Requests with tools: each asked plain and streamed, and raw where the answer has to be taken apart.

The suite (``toolcall_suite/``) is asked by rotation: every night goes on where
the night before ended, so that no night costs more than its share and each
request comes round. Which requests a night asks depends on the number of the
night alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probes.dialects.dialect import Dialect
from probes.toolcall_suite.prompt import ToolPrompt
from ringtrue.errors import ConfigError
from ringtrue.records import Request, Sampling

PLAIN, STREAMED, RAW, BARE = "plain", "stream", "raw", "bare"


def of_the_night(suite: Sequence[ToolPrompt], count: int, night: int) -> tuple[ToolPrompt, ...]:
    """Return the ``count`` requests of one night, all where there are not so many.

    Raises:
        ConfigError: fewer than one is asked for.
    """
    if count < 1:
        raise ConfigError(
            f"{count} requests can't be asked", where="parts.toolcalls", remedy="Ask at least 1"
        )
    if count >= len(suite):
        return tuple(suite)
    start = night * count
    return tuple(suite[(start + at) % len(suite)] for at in range(count))


def paired(prompt: ToolPrompt, *, cap: int, night: int, dialect: Dialect) -> tuple[Request, Request]:
    """Return the request plain and streamed: greedy, of one session that is new every night.

    Both in one session, so that a balancer gives the pair to one backend and
    the two differ in nothing but the form of the answer.
    """
    plain = replace(
        prompt.request,
        id=f"{prompt.id}/{PLAIN}",
        sampling=Sampling(temperature=0.0, max_tokens=cap),
        return_token_ids=dialect.returns_token_ids,
        session=session_of(prompt, night),
    )
    return plain, replace(plain, id=f"{prompt.id}/{STREAMED}", stream=True)


def raw(prompt: ToolPrompt, ids: Sequence[int], *, cap: int, night: int, dialect: Dialect) -> Request:
    """Return the same question to the completions route, as the token IDs that the chat should have become.

    What comes back is what the model writes, before any parser.
    """
    return Request(
        id=f"{prompt.id}/{RAW}",
        prompt_token_ids=tuple(ids),
        sampling=Sampling(temperature=0.0, max_tokens=cap),
        return_token_ids=dialect.returns_token_ids,
        session=session_of(prompt, night),
    )


def bare(prompt: ToolPrompt, *, night: int, dialect: Dialect) -> Request:
    """Return the conversation without its tools, for one token: what counts is how long its prompt is."""
    return Request(
        id=f"{prompt.id}/{BARE}",
        messages=prompt.messages,
        sampling=Sampling(temperature=0.0, max_tokens=1),
        return_token_ids=dialect.returns_token_ids,
        session=session_of(prompt, night),
    )


def session_of(prompt: ToolPrompt, night: int) -> str:
    """Return the session in which one request is asked tonight."""
    return f"{prompt.id}-{night}"
