"""Small changes of a prompt's chat that several mutators share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tokenizer_checks.templates.chat import Message, Prompt

SYSTEM_ROLES = frozenset({"system", "developer"})


def with_messages(prompt: Prompt, messages: Iterable[Message]) -> Prompt:
    """Return the prompt with other messages."""
    return replace(prompt, chat=replace(prompt.chat, messages=tuple(messages)))


def each_message(change: Callable[[Message], Message]) -> Callable[[Prompt], Prompt]:
    """Return what changes every message of a prompt by ``change``."""
    return lambda prompt: with_messages(prompt, [change(message) for message in prompt.chat.messages])


def each_tool(change: Callable[[Any], Any]) -> Callable[[Prompt], Prompt]:
    """Return what changes every tool of a prompt by ``change``."""

    def changed(prompt: Prompt) -> Prompt:
        tools = prompt.chat.tools
        if tools is None:
            return prompt
        return replace(prompt, chat=replace(prompt.chat, tools=tuple(change(tool) for tool in tools)))

    return changed


def without(message: Message, *keys: str) -> Message:
    """Return the message without these keys."""
    return {key: value for key, value in message.items() if key not in keys}
