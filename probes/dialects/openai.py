"""The common subset: what every OpenAI-compatible server takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringtrue.payload import to_body
from ringtrue.records import Request


@dataclass(frozen=True, slots=True)
class OpenAIDialect:
    """No token IDs, no prompt logprobs: strict servers answer 400 to fields they don't know."""

    name: str = "openai"
    returns_token_ids: bool = False
    returns_prompt_logprobs: bool = False

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The body of ``ringtrue.payload.to_body``."""
        return to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:
        """``prompt_cache_key``, by which OpenAI chooses a machine, else ``user``, the older name."""
        return ({"prompt_cache_key": key}, {"user": key})
