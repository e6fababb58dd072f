"""How a route spells what a chat asks for beside its messages and tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenizer_checks.templates.chat import Chat


@dataclass(frozen=True, slots=True)
class Spelling:
    """The names of a route's fields, ``None`` for what it has none for.

    With ``continues_by_itself`` the server leaves a last message of the
    assistant open whatever is asked; with ``None`` that depends on its version
    or template, and no such chat is sent. With ``plain_messages`` the route takes
    messages of a role and a text alone in the chat's own spelling.
    """

    options: str | None = None
    generation_prompt: str | None = None
    continue_final: str | None = None
    continues_by_itself: bool | None = False
    plain_messages: bool = False
    tools: bool = True

    def refusal(self, chat: Chat) -> str | None:
        """Return why this chat can't be asked for, ``None`` where it can."""
        return self._content_refusal(chat) or self._end_refusal(chat)

    def _content_refusal(self, chat: Chat) -> str | None:
        if self.plain_messages and not all(map(_is_plain, chat.messages)):
            return "can't send calls, reasoning or typed content in the chat's own spelling"
        if chat.tools and not self.tools:
            return "can't send tools"
        if chat.options and self.options is None:
            return "can't pass options to the template"
        return None

    def _end_refusal(self, chat: Chat) -> str | None:
        if self.continues_by_itself is None and _ends_with_assistant(chat):
            return "can't say whether a last message of the assistant is to be left open or closed"
        if chat.continue_final and not self._leaves_open(chat):
            return "can't ask for the last message to be left open"
        if not chat.continue_final and self.continues_by_itself and _ends_with_assistant(chat):
            return "can't ask for a last message of the assistant to be closed"
        if not chat.generation_prompt and not chat.continue_final and self.generation_prompt is None:
            return "can't ask for a prompt without the generation prompt"
        return None

    def fields(self, chat: Chat) -> dict[str, Any]:
        """Return the fields beside messages and tools; only for chats without a ``refusal``."""
        fields: dict[str, Any] = {}
        if chat.options and self.options is not None:
            fields[self.options] = dict(chat.options)
        if chat.continue_final and self.continue_final is not None:
            fields[self.continue_final] = True
        asks_for_none = chat.continue_final and not self.continues_by_itself
        if self.generation_prompt is not None and (asks_for_none or _bare(chat)):
            fields[self.generation_prompt] = False
        return fields

    def _leaves_open(self, chat: Chat) -> bool:
        by_itself = self.continues_by_itself is True and _ends_with_assistant(chat)
        return self.continue_final is not None or by_itself


def _bare(chat: Chat) -> bool:
    return not chat.generation_prompt and not chat.continue_final


def _ends_with_assistant(chat: Chat) -> bool:
    return bool(chat.messages) and chat.messages[-1].get("role") == "assistant"


def _is_plain(message: Any) -> bool:
    return message.keys() == {"role", "content"} and isinstance(message["content"], str)
