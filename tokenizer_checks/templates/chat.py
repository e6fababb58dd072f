"""What a prompt is made of: the chat, the template, and the environment that renders it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat as a request carries it; everything in it is JSON.

    ``options`` are further variables of the template, such as
    ``enable_thinking``. ``continue_final`` leaves the last message open, and
    then ``generation_prompt`` is ignored.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] | None = None
    generation_prompt: bool = True
    continue_final: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How the filter ``tojson`` writes; the defaults are transformers'.

    ``sort_keys`` and ``compact`` go before what the template asks for.
    """

    sort_keys: bool = False
    compact: bool = False
    escape_html: bool = False
    escape_slashes: bool = False
    ascii_only: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """Settings of a template engine; the defaults are transformers'."""

    trim_blocks: bool = True
    lstrip_blocks: bool = True
    keep_trailing_newline: bool = False
    has_clock: bool = True  # whether ``strftime_now`` exists
    json: JsonStyle = JsonStyle()


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a prompt's text follows from.

    ``special`` holds the tokenizer's named special tokens (``bos_token``,
    ``eos_token``, ...); ``now`` is what ``strftime_now`` tells.
    """

    template: str
    chat: Chat
    now: datetime
    special: Mapping[str, str] = field(default_factory=dict)
    name: str = "chat template"
    dialect: Dialect = Dialect()
