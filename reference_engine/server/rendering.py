"""What a chat asks of the template, as vLLM names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, model_validator

from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.spellings import as_rendered


class Rendering(BaseModel):
    """The fields of a body from which, with its messages, the prompt follows."""

    tools: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.continue_final_message and self.add_generation_prompt:
            msg = "continue_final_message needs add_generation_prompt: false"
            raise ValueError(msg)
        return self

    def chat(self, messages: Sequence[BaseModel]) -> Chat:
        """Return the chat of ``messages`` as the template gets it: arguments of calls as objects."""
        sent = Chat(
            messages=tuple(message.model_dump() for message in messages),
            tools=tuple(self.tools) if self.tools else None,
            generation_prompt=self.add_generation_prompt,
            continue_final=self.continue_final_message,
            options=self.chat_template_kwargs or {},
        )
        return as_rendered(sent)[0]
