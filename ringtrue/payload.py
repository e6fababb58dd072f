"""A request as the OpenAI API spells it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringtrue.records import Request, Sampling

CHAT_PATH = "/v1/chat/completions"
COMPLETIONS_PATH = "/v1/completions"


def path_of(request: Request) -> str:
    """The route a request goes to: chat for messages, completions for text and token IDs."""
    return COMPLETIONS_PATH if request.messages is None else CHAT_PATH


def to_body(request: Request, model: str) -> dict[str, Any]:
    """The JSON body of a request, in what every OpenAI-compatible server understands.

    ``return_token_ids`` and ``prompt_logprobs`` are no part of it: dialects add
    them. ``request.extra`` comes last and overrides.
    """
    body: dict[str, Any] = {"model": model}
    if request.messages is not None:
        body["messages"] = [dict(message) for message in request.messages]
    else:
        ids = request.prompt_token_ids
        body["prompt"] = request.prompt if ids is None else list(ids)
    optional = {
        "tools": None if request.tools is None else [dict(tool) for tool in request.tools],
        "tool_choice": request.tool_choice,
        "response_format": request.response_format,
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "max_tokens": request.sampling.max_tokens,
        "seed": request.sampling.seed,
        "stop": list(request.sampling.stop) or None,
    }
    body.update((name, value) for name, value in optional.items() if value is not None)
    if request.logprobs is not None and request.messages is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    elif request.logprobs is not None:
        body["logprobs"] = request.logprobs
    if request.echo:
        body["echo"] = True
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body | dict(request.extra)


def from_body(request_id: str, body: Mapping[str, Any]) -> Request:
    """Read a body back into a request; what has no field of its own goes to ``extra``.

    ``to_body(from_body(id, body), body["model"])`` sends the same question.
    """
    rest = dict(body)
    rest.pop("model", None)
    stream = bool(rest.pop("stream", False))
    if rest.get("stream_options") == {"include_usage": True}:
        rest.pop("stream_options")
    messages, prompt = rest.pop("messages", None), rest.pop("prompt", None)
    tools, stop = rest.pop("tools", None), rest.pop("stop", None)
    asked, top = rest.pop("logprobs", None), rest.pop("top_logprobs", None)
    ids = tuple(prompt) if isinstance(prompt, list) and all(type(i) is int for i in prompt) else None
    if prompt is not None and ids is None and not isinstance(prompt, str):
        rest["prompt"] = prompt  # a batch of prompts has no field here
    return Request(
        id=request_id,
        messages=None if messages is None else tuple(messages),
        prompt_token_ids=ids,
        prompt=prompt if isinstance(prompt, str) else None,
        tools=None if tools is None else tuple(tools),
        tool_choice=rest.pop("tool_choice", None),
        response_format=rest.pop("response_format", None),
        sampling=Sampling(
            temperature=rest.pop("temperature", None),
            top_p=rest.pop("top_p", None),
            max_tokens=rest.pop("max_tokens", rest.pop("max_completion_tokens", None)),
            seed=rest.pop("seed", None),
            stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
        ),
        logprobs=(top or 0) if asked is True else asked if type(asked) is int else None,
        prompt_logprobs=rest.pop("prompt_logprobs", None),
        echo=bool(rest.pop("echo", False)),
        return_token_ids=bool(rest.pop("return_token_ids", False)),
        stream=stream,
        extra=rest,
    )
