"""vLLM, and servers that speak like it (``ringtrue serve`` does)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringtrue.payload import to_body
from ringtrue.records import Request


@dataclass(frozen=True, slots=True)
class VllmDialect:
    """Asks for token IDs and prompt logprobs where the request wants them."""

    name: str = "vllm"
    returns_token_ids: bool = True
    returns_prompt_logprobs: bool = True

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The common body and vLLM's own fields.

        With token IDs the alternatives are named by ID as well
        (``return_tokens_as_token_ids``), since strings and bytes are ambiguous.
        """
        own: dict[str, Any] = {}
        if request.return_token_ids:
            own["return_token_ids"] = True
            if request.logprobs is not None:
                own["return_tokens_as_token_ids"] = True
        if request.prompt_logprobs is not None:
            own["prompt_logprobs"] = request.prompt_logprobs
        return own | to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:
        """``cache_salt``: blocks of the prefix cache are found only by requests with the same one."""
        return ({"cache_salt": key},)
