"""A template and a tokenizer, with the name by which reports and errors speak of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ringtrue.endpoint import PromptFormat
from tokenizer_checks.templates.model import ModelPrompts


@dataclass(frozen=True)
class NamedFormat:
    """What token IDs are held against."""

    name: str
    model: PromptFormat

    @cached_property
    def prompts(self) -> ModelPrompts:
        """The prompts by the template and the tokenizer."""
        return ModelPrompts(self.model, name=f"chat template of {self.name}")

    @property
    def marker(self) -> str | None:
        """A control token as text, the one that ends an answer where there is one."""
        named = self.model.special_tokens
        return named.get("eos_token") or next(iter(named.values()), None)
