"""The chats of a night: one for each layer that a template or a tokenizer can get wrong."""

from __future__ import annotations

from evals.tokens.chats import NamedChat, choose_chats
from ringtrue.errors import ConfigError
from tokenizer_checks.fingerprint import hash_of
from tokenizer_checks.templates.chat import Chat

NAMES = (
    "one_user",
    "system",
    "one_tool",
    "one_tool_without",
    "two_turns",
    "empty_system",
    "tool_round_trip",
    "date_asked",
    "special_tokens",
    "trailing_space",
    "trailing_space_stripped",
    "reasoning_history",
    "thinking_off",
    "tool_unsorted_keys",
    "tool_sorted_keys",
    "digits",
    "unicode_combining",
    "leading_spaces",
)
"""In the order in which a smaller number of them is asked; both sides of a relation stand together."""


def nightly_chats(count: int) -> tuple[NamedChat, ...]:
    """Return the first ``count`` chats of a night.

    Raises:
        ConfigError: there are not so many.
    """
    if count > len(NAMES):
        raise ConfigError(
            f"there are {len(NAMES)} chats, not {count}",
            where="parts.prompts",
            remedy=f"Ask for at most {len(NAMES)} a night; ringtrue tokens diff --all asks more",
        )
    return choose_chats(NAMES[:count])


def label_of(named: NamedChat) -> str:
    """Return a name that changes with the chat: states of two versions of a chat are never compared."""
    return f"{named.name}.{_hash(named.chat):013x}"


def name_of(label: str) -> str:
    """Return the chat's name in a label."""
    return label.rpartition(".")[0]


def _hash(chat: Chat) -> int:
    return hash_of((chat.messages, chat.tools, chat.generation_prompt, chat.continue_final, chat.options))
