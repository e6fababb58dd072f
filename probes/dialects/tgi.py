"""Hugging Face's text-generation-inference (TGI).

Read from the source of its router, versions 2 and 3; not run against a live
server. It writes tools, or a sentence about them, into the last message, so
that with tools its IDs are not those of the model's template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.dialects.openai import counted
from probes.dialects.reading import at, each
from probes.dialects.shown import Found
from probes.dialects.spelling import Spelling
from probes.dialects.ways import Asking, Generation, Route, TextRoute, Way, chat_body
from ringtrue.payload import to_body
from ringtrue.records import Request

_CHAT = Spelling(continues_by_itself=None)


@dataclass(frozen=True, slots=True)
class TgiDialect:
    """The chat route counts; routes of its own show IDs."""

    name: str = "tgi"
    returns_token_ids: bool = False
    returns_prompt_logprobs: bool = False

    @property
    def ways(self) -> tuple[Way, ...]:
        """The chat, what ``/chat_tokenize`` makes of it, and ``/generate`` with that text."""
        without = "the chat route shows a count of prompt tokens, and no IDs"
        return (
            Generation("chat", counted, _CHAT, without=without),
            Route("chat_tokenize", "/chat_tokenize", _chat_tokenize_body, _tokenized, spelling=_CHAT),
            Route("generate", "/generate", _generate_body, _prefilled, generates=True, check=_added_bos),
        )

    @property
    def text_route(self) -> TextRoute | None:
        """``/tokenize``, which adds the special tokens that it adds to every text."""
        return TextRoute("/tokenize", lambda _, text: {"inputs": text}, lambda body: Found(each(body, "id")))

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The common body."""
        return to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's
        """None."""
        return ()


def _chat_tokenize_body(asking: Asking) -> dict[str, Any]:
    return chat_body(asking, _CHAT)


def _tokenized(body: Any) -> Found:
    return Found(each(at(body, "tokenize_response"), "id"), text=at(body, "templated_text"))


def _generate_body(asking: Asking) -> dict[str, Any] | None:
    if asking.text is None:
        return None
    details = {"details": True, "decoder_input_details": True, "max_new_tokens": 1}
    return {"inputs": asking.text, "parameters": details}


def _prefilled(body: Any) -> Found:
    return Found(each(at(body, "details", "prefill"), "id"))


def _added_bos(asking: Asking, found: Found) -> str | None:
    """``/generate`` puts special tokens before every text; a chat that has its own is not at fault."""
    ids = asking.ids
    if ids is not None and found.ids == [ids[0], *ids]:
        return "this route puts a second BOS before text that begins with one; behind it the IDs are the same"
    return None
