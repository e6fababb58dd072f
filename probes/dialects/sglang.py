"""SGLang's OpenAI-compatible server and its own routes.

Read from the source of SGLang 0.5.13 and its documentation of native routes;
not run against a live server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.dialects.reading import at, each
from probes.dialects.shown import Found
from probes.dialects.spelling import Spelling
from probes.dialects.ways import Asking, Generation, Route, TextRoute, Way, chat_body
from ringtrue.payload import to_body
from ringtrue.records import Request

_CHAT = Spelling("chat_template_kwargs", continue_final="continue_final_message")
_TOKENIZE = Spelling("chat_template_kwargs", "add_generation_prompt", "continue_final_message")


@dataclass(frozen=True, slots=True)
class SglangDialect:
    """Token IDs stand in the choice; a chat that streams is refused when it asks for them."""

    name: str = "sglang"
    returns_token_ids: bool = True
    returns_prompt_logprobs: bool = False

    @property
    def ways(self) -> tuple[Way, ...]:
        """The chat, what ``/tokenize`` makes of it (newer servers), and two routes for its IDs."""
        return (
            Generation("chat", _in_choice, _CHAT, return_token_ids=True),
            Route("tokenize", "/tokenize", _tokenize_body, _tokenized, spelling=_TOKENIZE),
            Route(
                "generate",
                "/generate",
                _generate_body,
                _generated,
                generates=True,
                missing="no other way showed ids to send",
            ),
            Generation("completions", _in_choice, prompt="ids", return_token_ids=True),
        )

    @property
    def text_route(self) -> TextRoute | None:
        """``/tokenize``, adding nothing to the text."""
        return TextRoute("/tokenize", _text_body, _tokenized)

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The common body, and the field that asks for token IDs: another on each of the two routes."""
        own: dict[str, Any] = {}
        if request.return_token_ids and request.messages is None:
            own["return_token_ids"] = True
        elif request.return_token_ids and not request.stream:
            own["return_prompt_token_ids"] = True
        return own | to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:
        """``cache_salt``, as vLLM; a server that knows none ignores it."""
        return ({"cache_salt": key},)


def _in_choice(body: Any) -> Found:
    return Found(at(body, "choices", 0, "prompt_token_ids"), at(body, "usage", "prompt_tokens"))


def _tokenize_body(asking: Asking) -> dict[str, Any]:
    return chat_body(asking, _TOKENIZE)


def _text_body(model: str, text: str) -> dict[str, Any]:
    return {"model": model, "prompt": text, "add_special_tokens": False}


def _tokenized(body: Any) -> Found:
    return Found(at(body, "tokens"), at(body, "count"))


def _generate_body(asking: Asking) -> dict[str, Any] | None:
    """Logprobs of the whole prompt: each entry of their list is ``[logprob, ID, text]``."""
    if asking.ids is None:
        return None
    sampling = {"temperature": 0.0, "max_new_tokens": 1}
    return {
        "input_ids": list(asking.ids),
        "sampling_params": sampling,
        "return_logprob": True,
        "logprob_start_len": 0,
    }


def _generated(body: Any) -> Found:
    meta = at(body, "meta_info")
    return Found(each(at(meta, "input_token_logprobs"), 1), at(meta, "prompt_tokens"))
