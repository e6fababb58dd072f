"""Fireworks' API.

Read from its API reference, version 4.259 (``return_token_ids``,
``raw_output``); not run against the live API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.dialects.reading import at, one_list
from probes.dialects.shown import Found
from probes.dialects.ways import Generation, TextRoute, Way
from ringtrue.payload import to_body
from ringtrue.records import Request


@dataclass(frozen=True, slots=True)
class FireworksDialect:
    """Token IDs stand beside the choices, as vLLM's do, and in each choice's raw output."""

    name: str = "fireworks"
    returns_token_ids: bool = True
    returns_prompt_logprobs: bool = False

    @property
    def ways(self) -> tuple[Way, ...]:
        """The chat, plain with its raw output and streamed, and the route for prompts with its IDs."""
        raw = {"raw_output": True}
        return (
            Generation("chat", _in_answer, extra=raw, return_token_ids=True),
            Generation("chat_stream", _in_answer, stream=True, return_token_ids=True),
            Generation("completions", _in_answer, extra=raw, prompt="ids", return_token_ids=True),
        )

    @property
    def text_route(self) -> TextRoute | None:
        """None."""
        return None

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The common body, and the field that asks for token IDs."""
        own = {"return_token_ids": True} if request.return_token_ids else {}
        return own | to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:
        """``prompt_cache_isolation_key``, else ``user``, by which machines are chosen."""
        return ({"prompt_cache_isolation_key": key}, {"user": key})


def _in_answer(body: Any) -> Found:
    """Each place that speaks must say the same."""
    choice = at(body, "choices", 0)
    raw = at(choice, "raw_output")
    ids, problem = one_list(*(at(holder, "prompt_token_ids") for holder in (body, choice, raw)))
    fragments = at(raw, "prompt_fragments")
    text = "".join(fragments) if _all_text(fragments) else None
    return Found(ids, at(body, "usage", "prompt_tokens"), text, problem)


def _all_text(fragments: object) -> bool:
    return isinstance(fragments, list) and all(isinstance(part, str) for part in fragments)
