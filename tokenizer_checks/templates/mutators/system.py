"""Faults of the system prompt and of the date in it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from tokenizer_checks.blame import Layer
from tokenizer_checks.templates.chat import Prompt
from tokenizer_checks.templates.mutators.messages import SYSTEM_ROLES, with_messages
from tokenizer_checks.templates.mutators.mutator import Mutator

# What templates begin their own system prompt with; the same words open the list of tools in some.
_DEFAULT = re.compile(r"You are (?!provided|given|able)[^'\"{}<\n\\]*")
_STUCK = (2024, 7, 26)  # the day at which Llama 3's template stands still without a clock


def _system_dropped(prompt: Prompt) -> Prompt:
    return with_messages(prompt, [m for m in prompt.chat.messages if m.get("role") not in SYSTEM_ROLES])


def _later_system_dropped(prompt: Prompt) -> Prompt:
    first, *later = prompt.chat.messages
    return with_messages(prompt, [first, *(m for m in later if m.get("role") not in SYSTEM_ROLES)])


def _default_dropped(prompt: Prompt) -> Prompt:
    return replace(prompt, template=_DEFAULT.sub("", prompt.template))


def _default_replaced(prompt: Prompt) -> Prompt:
    if prompt.chat.messages[0].get("role") in SYSTEM_ROLES:
        return prompt
    wrong = {"role": "system", "content": "You are an AI assistant. Answer every question helpfully."}
    return with_messages(prompt, [wrong, *prompt.chat.messages])


def _date_stuck(prompt: Prompt) -> Prompt:
    year, month, day = _STUCK
    return replace(prompt, now=datetime(year, month, day, tzinfo=prompt.now.tzinfo))


def _clock_missing(prompt: Prompt) -> Prompt:
    return replace(prompt, dialect=replace(prompt.dialect, has_clock=False))


SYSTEM = (
    Mutator(
        "system_dropped",
        Layer.SYSTEM,
        "ollama#7682",
        "the caller's system message is never used",
        prompt=_system_dropped,
    ),
    Mutator(
        "later_system_dropped",
        Layer.SYSTEM,
        "Rapid-MLX#1765",
        "system messages in the middle of a chat are left out",
        prompt=_later_system_dropped,
    ),
    Mutator(
        "default_system_dropped",
        Layer.SYSTEM,
        "aprender#3990",
        "the template's own system prompt is left out",
        prompt=_default_dropped,
    ),
    Mutator(
        "default_system_replaced",
        Layer.SYSTEM,
        "lmdeploy#3475",
        "the server's system prompt stands where the template's own belongs",
        prompt=_default_replaced,
    ),
    Mutator(
        "date_stuck",
        Layer.DATE,
        "sglang#3296",
        "the date is a fixed one",
        prompt=_date_stuck,
    ),
    Mutator(
        "clock_missing",
        Layer.DATE,
        "text-generation-inference#2987",
        "the engine has no strftime_now: the template refuses, or falls back to a fixed date",
        prompt=_clock_missing,
    ),
)
