"""Ollama.

Read from the source of its API types and of its OpenAI-compatible route; not
run against a live server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.dialects.openai import counted
from probes.dialects.reading import at
from probes.dialects.shown import Found
from probes.dialects.spelling import Spelling
from probes.dialects.ways import Asking, Generation, Route, TextRoute, Way, chat_body
from ringtrue.payload import to_body
from ringtrue.records import Request

_CHAT = Spelling(continues_by_itself=None)


@dataclass(frozen=True, slots=True)
class OllamaDialect:
    """Text and counts; IDs only of what ``/api/generate`` can ask.

    Older servers leave tokens that their cache held out of the count.
    """

    name: str = "ollama"
    returns_token_ids: bool = False
    returns_prompt_logprobs: bool = False

    @property
    def ways(self) -> tuple[Way, ...]:
        """The chat, what it renders to, and ``/api/generate`` for a single question."""
        without = "the chat route shows a count of prompt tokens, and no IDs"
        return (
            Generation("chat", counted, _CHAT, without=without),
            Route(
                "render",
                "/v1/chat/completions",
                _render_body,
                _rendered,
                spelling=_CHAT,
                without="this server shows the prompt's text, and no IDs",
            ),
            Route(
                "generate",
                "/api/generate",
                _generate_body,
                _in_context,
                generates=True,
                spelling=Spelling(plain_messages=True, tools=False),
                missing="this route asks one question, with or without a system message before it",
            ),
        )

    @property
    def text_route(self) -> TextRoute | None:
        """None."""
        return None

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The common body."""
        return to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's
        """None."""
        return ()


def _render_body(asking: Asking) -> dict[str, Any]:
    return chat_body(asking, _CHAT) | {"max_tokens": 1, "_debug_render_only": True}


def _rendered(body: Any) -> Found:
    return Found(text=at(body, "_debug_info", "rendered_template"))


def _generate_body(asking: Asking) -> dict[str, Any] | None:
    messages = asking.chat.messages
    roles = [message.get("role") for message in messages]
    if roles not in (["user"], ["system", "user"]):
        return None
    system = {"system": messages[0]["content"]} if len(messages) > 1 else {}
    return {
        "model": asking.endpoint.spec.model,
        "prompt": messages[-1]["content"],
        **system,
        "stream": False,
        "options": {"num_predict": 1, "temperature": 0.0},
    }


def _in_context(body: Any) -> Found:
    """``context`` is the text of prompt and answer, tokenized once more: its first IDs are the prompt's.

    Where it is not as long as both were counted, its border is unknown: the
    answer's first token may have joined the prompt's last, or a BOS is missing.
    """
    context = at(body, "context")
    asked, answered = at(body, "prompt_eval_count"), at(body, "eval_count")
    if not isinstance(context, list):
        return Found(context, asked)
    if type(asked) is int and type(answered) is int and 0 < asked <= asked + answered == len(context):
        return Found(context[:asked], asked)
    problem = "`context` is not as long as prompt and answer were counted: where the prompt ends is unknown"
    return Found(None, asked, problem=problem)
