"""vLLM, and servers that speak like it (``ringtrue serve`` does).

Read from the source of vLLM 0.32 and run against it. ``prompt_text`` and the
render route came late: older servers leave the one out and have no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.dialects.reading import at
from probes.dialects.shown import Found
from probes.dialects.spelling import Spelling
from probes.dialects.ways import Asking, Generation, Route, TextRoute, Way, chat_body
from ringtrue.payload import to_body
from ringtrue.records import Request

_CHAT = Spelling("chat_template_kwargs", "add_generation_prompt", "continue_final_message")
_RESPONSES = Spelling("chat_template_kwargs", plain_messages=True)


@dataclass(frozen=True, slots=True)
class VllmDialect:
    """Asks for token IDs and prompt logprobs where the request wants them."""

    name: str = "vllm"
    returns_token_ids: bool = True
    returns_prompt_logprobs: bool = True

    @property
    def ways(self) -> tuple[Way, ...]:
        """The three routes that answer a chat, two that only render it, and the route for prompts.

        The last gets the IDs that the chat used, and its text: with a BOS in
        the text and none asked for, the same IDs must come out.
        """
        text = {"return_prompt_text": True}
        plain = {"add_special_tokens": False}  # the chat's text has its special tokens already
        return (
            Generation("chat", _in_chat, _CHAT, text, return_token_ids=True),
            Generation("chat_stream", _in_chat, _CHAT, text, stream=True, return_token_ids=True),
            Route(
                "responses",
                "/v1/responses",
                _responses_body,
                _in_response,
                used=True,
                generates=True,
                spelling=_RESPONSES,
            ),
            Route("tokenize", "/tokenize", _tokenize_body, _tokenized, spelling=_CHAT),
            Route("render", "/v1/chat/completions/render", _tokenize_body, _rendered, spelling=_CHAT),
            Generation("completions", _in_choice, prompt="ids", return_token_ids=True),
            Generation("completions_text", _in_choice, extra=plain, prompt="text", return_token_ids=True),
        )

    @property
    def text_route(self) -> TextRoute | None:
        """``/tokenize``, adding nothing to the text."""
        return TextRoute("/tokenize", _text_body, _tokenized)

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


def _in_chat(body: Any) -> Found:
    """Beside the choices; in a stream in the first event, whose usage comes last."""
    return Found(at(body, "prompt_token_ids"), at(body, "usage", "prompt_tokens"), at(body, "prompt_text"))


def _in_choice(body: Any) -> Found:
    return Found(at(body, "choices", 0, "prompt_token_ids"), at(body, "usage", "prompt_tokens"))


def _responses_body(asking: Asking) -> dict[str, Any]:
    body = chat_body(asking, _RESPONSES)
    own = {"max_output_tokens": 1, "temperature": 0.0, "store": False, "enable_response_messages": True}
    tools = {"tools": list(map(_flat, body.pop("tools")))} if "tools" in body else {}
    return {"model": body.pop("model"), "input": body.pop("messages"), **tools, **own, **body}


def _flat(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A function as the Responses API spells it: its fields beside its type."""
    function = tool.get("function")
    return {"type": tool.get("type"), **function} if isinstance(function, Mapping) else tool


def _in_response(body: Any) -> Found:
    asked = at(body, "input_messages", 0)
    return Found(at(asked, "tokens"), at(body, "usage", "input_tokens"), at(asked, "message"))


def _tokenize_body(asking: Asking) -> dict[str, Any]:
    return chat_body(asking, _CHAT)


def _text_body(model: str, text: str) -> dict[str, Any]:
    return {"model": model, "prompt": text, "add_special_tokens": False}


def _tokenized(body: Any) -> Found:
    return Found(at(body, "tokens"), at(body, "count"))


def _rendered(body: Any) -> Found:
    return Found(at(body, "token_ids"))
