"""The common subset: what every OpenAI-compatible server takes.

Read from OpenAI's API reference; run against vLLM 0.32 and llama-cpp-python
0.3.36, which take it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.dialects.reading import at
from probes.dialects.shown import Found
from probes.dialects.ways import Generation, TextRoute, Way
from ringtrue.payload import to_body
from ringtrue.records import Request


@dataclass(frozen=True, slots=True)
class OpenAIDialect:
    """No token IDs, no prompt logprobs: strict servers answer 400 to fields they don't know."""

    name: str = "openai"
    returns_token_ids: bool = False
    returns_prompt_logprobs: bool = False

    @property
    def ways(self) -> tuple[Way, ...]:
        """The count alone."""
        return (Generation("chat", counted, without="this API shows a count of prompt tokens, and no IDs"),)

    @property
    def text_route(self) -> TextRoute | None:
        """None."""
        return None

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The body of ``ringtrue.payload.to_body``."""
        return to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:
        """``prompt_cache_key``, by which OpenAI chooses a machine, else ``user``, the older name."""
        return ({"prompt_cache_key": key}, {"user": key})


def counted(body: Any) -> Found:
    """Find ``usage.prompt_tokens``."""
    return Found(count=at(body, "usage", "prompt_tokens"))
