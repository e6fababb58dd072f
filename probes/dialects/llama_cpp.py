"""llama.cpp's ``llama-server``; llama-cpp-python's server has a dialect of its own.

Read from the source and the README of llama.cpp's server (``/apply-template``,
``/tokenize``, ``verbose``); not run against a live ``llama-server``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.dialects.reading import at
from probes.dialects.shown import Found, Shown, judge
from probes.dialects.spelling import Spelling
from probes.dialects.ways import Asking, Generation, TextRoute, Way, chat_body
from ringtrue.payload import to_body
from ringtrue.records import FailureKind, Request

_CHAT = Spelling("chat_template_kwargs", "add_generation_prompt", continues_by_itself=True)


@dataclass(frozen=True, slots=True)
class LlamaCppDialect:
    """The server shows a prompt's text and tokenizes text; it shows no IDs in an answer."""

    name: str = "llama_cpp"
    returns_token_ids: bool = False
    returns_prompt_logprobs: bool = False

    @property
    def ways(self) -> tuple[Way, ...]:
        """The chat, for text and count, and its template applied and tokenized, for IDs."""
        without = "this server shows the prompt's text and count in its answer, and no IDs"
        return (
            Generation("chat", _in_chat, _CHAT, {"verbose": True}, without=without),
            _ApplyTemplate(),
        )

    @property
    def text_route(self) -> TextRoute | None:
        """``/tokenize``, adding nothing to the text."""
        return TextRoute("/tokenize", _text_body, _tokenized)

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The common body."""
        return to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's
        """None: slots are chosen by the likeness of prompts."""
        return ()


@dataclass(frozen=True, slots=True)
class _ApplyTemplate:
    """``/apply-template`` renders as the chat route does; ``/tokenize`` then makes IDs as it does.

    The text leaves out a BOS that the vocabulary adds by itself:
    ``add_special`` puts it there once.
    """

    name: str = "apply_template"
    used: bool = False
    generates: bool = False

    async def show(self, asking: Asking) -> Shown:
        if (refused := _CHAT.refusal(asking.chat)) is not None:
            return self._without(refused)
        applied = await asking.endpoint.call("POST", "/apply-template", chat_body(asking, _CHAT))
        if applied.error is not None:
            known = applied.error.kind is FailureKind.NOT_FOUND
            other = (
                "; llama-cpp-python's server has no such route: its dialect is llama_cpp_python"
                if known
                else ""
            )
            return self._without(applied.error.message + other)
        text = at(applied.body, "prompt")
        if not isinstance(text, str) or not text:
            return self._without("/apply-template gave no text under `prompt`")
        asked = {"content": text, "add_special": True, "parse_special": True}
        reply = await asking.endpoint.call("POST", "/tokenize", asked)
        if reply.error is not None:
            return self._without(reply.error.message, text)
        found = Found(at(reply.body, "tokens"), text=text)
        return judge(self.name, found, used=False, vocabulary_size=asking.vocabulary_size)

    def _without(self, problem: str, text: str | None = None) -> Shown:
        return Shown(self.name, self.used, None, None, text, problem)


def _text_body(_: str, text: str) -> dict[str, Any]:
    return {"content": text, "add_special": False, "parse_special": True}


def _tokenized(body: Any) -> Found:
    return Found(at(body, "tokens"))


def _in_chat(body: Any) -> Found:
    return Found(count=at(body, "usage", "prompt_tokens"), text=at(body, "__verbose", "prompt"))
