"""The exchanges kept in ``tests/golden/wire``, how to repeat one, and what must not change about it.

Each file holds one request and the answer a real engine gave::

    {"engine", "request": {"method", "path", "body"},
     "response": {"status", "content_type", "json" or "text"}}

``json`` is a plain body; ``text`` is a stream as it came, or a body that is not JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.engines.servers import MODEL, ROOT, Server

FOLDER = ROOT / "tests" / "golden" / "wire"


@dataclass(frozen=True, slots=True)
class Case:
    """One request to one engine. ``body`` may be bytes, to send what is not JSON."""

    engine: str
    name: str
    body: Any = None
    path: str = "/v1/chat/completions"

    @property
    def file(self) -> Path:
        """Where the golden exchange lies."""
        return FOLDER / f"{self.engine}_{self.name}.json"


def _chat(content: str = "hi", **more: Any) -> dict[str, Any]:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 2,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 5,
    }
    return {**body, **more}


def _complete(prompt: str | list[int], **more: Any) -> dict[str, Any]:
    body = {"model": MODEL, "prompt": prompt, "max_tokens": 2, "temperature": 0, "logprobs": 5}
    return {**body, **more}


_IDS = [504, 3575, 282, 4649, 314]  # "The capital of France is"
_TEXT = "The capital of France is"
_CJK = "學而時習之"  # its next tokens hold parts of characters
_CUT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": _CJK}]
_CONTINUE: dict[str, Any] = {
    "continue_final_message": True,
    "add_generation_prompt": False,
    "return_token_ids": True,
}
_STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
_TOKEN_IDS: dict[str, Any] = {"return_token_ids": True}
# In a request it overrides the flag the server was started with.
_AS_TEXT: dict[str, Any] = {"return_tokens_as_token_ids": False}
_COMPLETIONS = "/v1/completions"

CASES = (
    Case("vllm", "chat", _chat(**_TOKEN_IDS)),
    Case("vllm", "chat_token_text", _chat(**_TOKEN_IDS, **_AS_TEXT)),
    Case("vllm", "chat_partial_characters", _chat(messages=_CUT, **_CONTINUE, **_AS_TEXT)),
    Case("vllm", "chat_stream", _chat(**_TOKEN_IDS, **_STREAM)),
    Case("vllm", "chat_stream_token_text", _chat(**_TOKEN_IDS, **_STREAM, **_AS_TEXT)),
    Case("vllm", "chat_prompt_logprobs", _chat(**_TOKEN_IDS, prompt_logprobs=2, max_tokens=1)),
    Case("vllm", "chat_sampled_outside", _chat(temperature=2, seed=2, top_logprobs=2, max_tokens=1)),
    Case("vllm", "completions", _complete(_IDS, **_TOKEN_IDS), _COMPLETIONS),
    Case("vllm", "completions_token_text", _complete(_IDS, **_TOKEN_IDS, **_AS_TEXT), _COMPLETIONS),
    Case("vllm", "completions_partial_characters", _complete(_CJK, **_TOKEN_IDS, **_AS_TEXT), _COMPLETIONS),
    Case("vllm", "completions_stream", _complete(_IDS, **_TOKEN_IDS, **_STREAM), _COMPLETIONS),
    Case(
        "vllm", "completions_prompt_logprobs", _complete(_IDS, prompt_logprobs=2, **_TOKEN_IDS), _COMPLETIONS
    ),
    Case("vllm", "completions_echo", _complete(_TEXT, echo=True, logprobs=2, **_TOKEN_IDS), _COMPLETIONS),
    Case("vllm", "models", path="/v1/models"),
    Case(
        "vllm",
        "tokenize",
        {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]},
        "/tokenize",
    ),
    Case("vllm", "error_k_too_large", _chat(top_logprobs=101)),
    Case("vllm", "error_unknown_model", _chat(model="nope")),
    Case("vllm", "error_context", _chat("1" * 4100)),
    Case("vllm", "error_body", _chat(messages="hi")),
    Case("vllm", "error_not_json", b"{nope"),
    Case("vllm", "error_no_route", {}, "/v1/nope"),
    Case("llama_cpp", "chat", _chat()),
    Case("llama_cpp", "chat_partial_characters", _chat(_CJK, top_logprobs=20)),
    Case("llama_cpp", "chat_stream", _chat(**_STREAM)),
    Case("llama_cpp", "chat_sampled_outside", _chat(temperature=2, seed=0, top_logprobs=2, max_tokens=1)),
    Case("llama_cpp", "chat_unknown_model", _chat(model="nope")),
    Case("llama_cpp", "completions", _complete(_TEXT), _COMPLETIONS),
    Case("llama_cpp", "completions_partial_characters", _complete(_CJK), _COMPLETIONS),
    Case("llama_cpp", "completions_echo", _complete(_TEXT, echo=True, logprobs=2), _COMPLETIONS),
    Case("llama_cpp", "models", path="/v1/models"),
    Case("llama_cpp", "error_token_ids", _complete(_IDS), _COMPLETIONS),
    Case("llama_cpp", "error_context", _chat("1" * 4100)),
    Case("llama_cpp", "error_body", _chat(messages="hi")),
    Case("llama_cpp", "error_not_json", b"{nope"),
    Case("llama_cpp", "error_no_route", {}, "/v1/nope"),
)


def ask(server: Server, case: Case) -> dict[str, Any]:
    """Send the case's request to a real server and return the exchange as the golden files hold it."""
    method = "GET" if case.body is None else "POST"
    body = case.body.decode() if isinstance(case.body, bytes) else case.body
    content = None if body is None else case.body if isinstance(case.body, bytes) else json.dumps(body)
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120.0) as client:
        answer = client.request(
            method, case.path, content=content, headers={"content-type": "application/json"}
        )
    kind = answer.headers["content-type"].partition(";")[0]
    text = answer.text.replace(str(ROOT), "/checkout")
    payload = {"json": json.loads(text)} if kind == "application/json" else {"text": text}
    return {
        "engine": case.engine,
        "request": {"method": method, "path": case.path, "body": body},
        "response": {"status": answer.status_code, "content_type": kind, **payload},
    }


def shape(exchange: Mapping[str, Any]) -> set[str]:
    """What the wire promises: every path of the answer with its type, no values but the status.

    Numbers, texts, the order and number of list items and the names of tokens
    differ from one machine to the next; a field that comes, goes or changes
    its type is a changed wire format.
    """
    response = exchange["response"]
    found = {f"status {response['status']}", response["content_type"]}
    if "json" in response:
        return found | set(_paths(response["json"], "$"))
    for line in response["text"].splitlines():
        field, _, data = line.partition(": ")
        if field == "data" and data != "[DONE]":
            found |= set(_paths(json.loads(data), "$"))
        else:
            found.add(line)
    return found


_BY_TOKEN = re.compile(r"\.(top_logprobs|prompt_logprobs)\[\]$")


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        # A list of alternatives is keyed by token, but for chat, whose items are {token, logprob, bytes}.
        by_token = _BY_TOKEN.search(path) and "logprob" not in value
        for key, item in value.items():
            yield from _paths(item, f"{path}.{'*' if by_token else key}")
    elif isinstance(value, list):
        yield f"{path}[]"
        for item in value:
            yield from _paths(item, f"{path}[]")
    else:
        yield f"{path}: {type(value).__name__}"
