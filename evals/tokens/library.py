"""The library of counts: how many tokens each template, and each known fault of it, gives to each request."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from evals.tokens.named_format import NamedFormat
from ringtrue.errors import ModelError
from tokenizer_checks.counts.asks import Ask
from tokenizer_checks.counts.consistency import Counts
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.model import ModelPrompts
from tokenizer_checks.templates.mutators import MUTATORS, Effect, mutate_ids
from tokenizer_checks.templates.spellings import as_rendered

Library = Mapping[str, Counts]
"""Prompt tokens by the hypothesis's name and the request's name."""


def hypothesis(model: str, fault: str | None = None) -> str:
    """Return what a hypothesis is called: the model alone is its own template and tokenizer."""
    return model if fault is None else f"{model} + {fault}"


def library(formats: Sequence[NamedFormat], asks: Sequence[Ask], now: datetime) -> Library:
    """Return the counts of all hypotheses on the day of ``now``.

    A request that a template refuses has no count under it, nor one whose
    count depends on how a server hands typed content on. Faults that change no
    prompt are no hypotheses of their own.

    Raises:
        ModelError: a model has no chat template, or refuses every request.
    """
    found: dict[str, Counts] = {}
    for one in formats:
        found |= _of_model(one, asks, now)
    return found


def dated(formats: Sequence[NamedFormat], asks: Sequence[Ask], days: Sequence[datetime]) -> Iterator[Library]:
    """Yield the library of each day whose counts differ from those of the days before it in ``days``."""
    own: list[object] = []
    for day in days:
        counts = [_own_counts(one.prompts, asks, day) for one in formats]
        if counts not in own:
            own.append(counts)
            yield library(formats, asks, day)


def chat_of(ask: Ask) -> Chat:
    """Return the chat of a request of the vectors."""
    options = ask.extra.get("chat_template_kwargs", {})
    return Chat(ask.messages, ask.tools or None, options=options)


def _of_model(one: NamedFormat, asks: Sequence[Ask], now: datetime) -> Library:
    prompts, renderer = one.prompts, Renderer()
    encode = functools.cache(prompts.encode)
    usual = _usual(prompts, asks, now)
    if not usual:
        prompts.text(chat_of(asks[0]), now)  # raises, and says why
        raise ModelError("the template refuses every request", where=one.name)
    found: dict[str, dict[str, int]] = {}
    changes: set[str] = set()
    for name, chat in usual.items():
        prompt = prompts.prompt(chat, now)
        for mutator in MUTATORS:
            mutated = mutate_ids(mutator, prompt, renderer, encode)
            if mutated.effect is not Effect.NOTHING:
                changes.add(mutator.name)
            if mutated.ids is not None:
                found.setdefault(mutator.name, {})[name] = len(mutated.ids)
    own = {hypothesis(one.name): _counts(prompts, usual, now)}
    return own | {hypothesis(one.name, name): found[name] for name in found if name in changes}


def _own_counts(prompts: ModelPrompts, asks: Sequence[Ask], now: datetime) -> Counts:
    return _counts(prompts, _usual(prompts, asks, now), now)


def _counts(prompts: ModelPrompts, chats: Mapping[str, Chat], now: datetime) -> dict[str, int]:
    return {name: len(prompts.ids(chat, now)) for name, chat in chats.items()}


def _usual(prompts: ModelPrompts, asks: Sequence[Ask], now: datetime) -> dict[str, Chat]:
    """Return the chats as the template gets them, but those refused or counted by the server's habits."""
    found: dict[str, Chat] = {}
    for ask in asks:
        chats = [chat for chat in as_rendered(chat_of(ask)) if _renders(prompts, chat, now)]
        if len({len(prompts.ids(chat, now)) for chat in chats}) == 1:
            found[ask.name] = chats[0]
    return found


def _renders(prompts: ModelPrompts, chat: Chat, now: datetime) -> bool:
    try:
        prompts.text(chat, now)
    except ModelError:
        return False
    return True
