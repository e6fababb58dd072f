"""A delivered answer as the bodies of chat completions, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reference_engine.server.answering import Answer
from reference_engine.server.answers import Envelope, token_ids, usage
from reference_engine.server.bodies import ChatBody
from reference_engine.server.logprob_shapes import TokenNames, chat_logprobs, prompt_logprobs
from reference_engine.server.tool_calls.delivered import Delivered

FRAGMENT = 12  # characters of a delta


def whole(body: ChatBody, envelope: Envelope, answer: Answer, told: Delivered) -> dict[str, Any]:
    """Return the body of a plain answer. Usage counts the tokens that the model wrote."""
    message: dict[str, Any] = {"role": "assistant", "content": told.content or (None if told.calls else "")}
    if told.reasoning:
        message["reasoning_content"] = told.reasoning
    if told.calls:
        message["tool_calls"] = [
            _identity(call.id, {"name": call.name, "arguments": call.arguments}) for call in told.calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": told.finish_reason,
        **_evidence(body, answer),
    }
    prompt, scores = answer.prompt, answer.prompt_scores
    extra: dict[str, Any] = {"usage": usage(len(prompt.ids), len(answer.pieces))}
    if body.return_token_ids:
        extra["prompt_token_ids"] = list(prompt.ids)
    if body.prompt_logprobs is not None and scores is not None:
        names = TokenNames(prompt.treatment.model.codec, body.return_tokens_as_token_ids)
        extra["prompt_logprobs"] = prompt_logprobs(prompt.ids, scores, body.prompt_logprobs, names)
    return envelope.wrap([choice], **extra)


def chunks(
    body: ChatBody, envelope: Envelope, answer: Answer, told: Delivered, *, include_usage: bool
) -> list[dict[str, Any]]:
    """Return the chunks of a streamed answer, without ``[DONE]``.

    The role comes first, then reasoning, content, and each call: its identity,
    then its arguments in fragments. The chunk with the finish reason carries
    the logprobs and the token IDs of the whole answer, as far as they were
    asked for: fragments of a parsed call have no tokens of their own.
    """
    opening = {"role": "assistant", "content": None if told.calls else ""}
    ids = list(answer.prompt.ids) if body.return_token_ids else None
    sent = [envelope.wrap([_choice(opening)], prompt_token_ids=ids)]
    sent += [envelope.wrap([_choice(delta)]) for delta in _deltas(told)]
    sent.append(envelope.wrap([_choice({}, told.finish_reason) | _evidence(body, answer)]))
    if include_usage:
        sent.append(envelope.wrap([], usage=usage(len(answer.prompt.ids), len(answer.pieces))))
    return sent


def fragments(text: str) -> list[str]:
    """Return a text in the pieces that it is streamed in."""
    return [text[at : at + FRAGMENT] for at in range(0, len(text), FRAGMENT)]


def _deltas(told: Delivered) -> Iterator[dict[str, Any]]:
    for piece in fragments(told.reasoning):
        yield {"reasoning_content": piece}
    for piece in fragments(told.content):
        yield {"content": piece}
    for index, call in enumerate(told.calls):
        opening = _identity(call.id, {"name": call.name, "arguments": ""})
        yield {"tool_calls": [{"index": index, **opening}]}
        for piece in fragments(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _identity(identity: str | None, function: dict[str, str]) -> dict[str, Any]:
    named = {} if identity is None else {"id": identity}
    return {**named, "type": "function", "function": function}


def _choice(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _evidence(body: ChatBody, answer: Answer) -> dict[str, Any]:
    names = TokenNames(answer.prompt.treatment.model.codec, body.return_tokens_as_token_ids)
    logprobs = chat_logprobs(answer.steps, names) if body.logprobs else None
    return {"logprobs": logprobs, **token_ids(answer.pieces, wanted=body.return_token_ids)}
