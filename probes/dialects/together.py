"""Together's API.

Read from its published OpenAPI file (``echo`` with ``logprobs``: the schema
PromptPart); not run against the live API.
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
class TogetherDialect:
    """The prompt comes back, with logprobs and the IDs they belong to, when ``echo`` asks for it."""

    name: str = "together"
    returns_token_ids: bool = False
    returns_prompt_logprobs: bool = False

    @property
    def ways(self) -> tuple[Way, ...]:
        """The chat, echoed; its ``logprobs`` is a number here."""
        return (Generation("chat", _echoed, extra={"echo": True, "logprobs": 1}),)

    @property
    def text_route(self) -> TextRoute | None:
        """None."""
        return None

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The common body."""
        return to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's
        """None is documented."""
        return ()


def _echoed(body: Any) -> Found:
    part = at(body, "prompt", 0)
    ids = at(part, "logprobs", "token_ids")
    return Found(ids, at(body, "usage", "prompt_tokens"), at(part, "text"))
