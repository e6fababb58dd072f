"""The JSON of answers, whole and streamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reference_engine.server.answering import Answer, Piece, Prompt
from reference_engine.server.bodies import ChatBody, CompletionBody, GenerationBody
from reference_engine.server.logprob_shapes import (
    TokenNames,
    chat_logprobs,
    completion_logprobs,
    prompt_logprobs,
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every object of one answer repeats. ``created`` is in seconds since 1970."""

    id: str
    kind: str
    created: int
    model: str
    fingerprint: str

    def wrap(self, choices: list[dict[str, Any]], **extra: Any) -> dict[str, Any]:
        """Return one object of the answer; an extra of None is left out."""
        return {
            "id": self.id,
            "object": self.kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
            **_given(**extra),
        }


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """Return the usage object."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


class ChatShape:
    """The answers of ``/v1/chat/completions``."""

    prefix = "chatcmpl"
    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def __init__(self, body: ChatBody) -> None:
        self._body = body

    def whole(self, envelope: Envelope, answers: Sequence[Answer]) -> dict[str, Any]:
        """Return the answer to a chat."""
        (answer,) = answers
        prompt, names = answer.prompt, self._names(answer.prompt)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer.text},
            "logprobs": chat_logprobs(answer.steps, names) if self._body.logprobs else None,
            "finish_reason": answer.finish_reason,
            **token_ids(answer.pieces, wanted=self._body.return_token_ids),
        }
        return envelope.wrap(
            [choice],
            usage=usage(len(prompt.ids), len(answer.pieces)),
            prompt_token_ids=list(prompt.ids) if self._body.return_token_ids else None,
            prompt_logprobs=_prompt_logprobs(self._body, answer, names),
        )

    def first(self, envelope: Envelope, prompt: Prompt, _index: int) -> dict[str, Any] | None:
        """Return the chunk that opens a stream."""
        choice = {
            "index": 0,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        ids = list(prompt.ids) if self._body.return_token_ids else None
        return envelope.wrap([choice], prompt_token_ids=ids)

    def chunk(
        self, envelope: Envelope, prompt: Prompt, piece: Piece, *, index: int, **_: int
    ) -> dict[str, Any]:
        """Return the chunk of one token."""
        logprobs = chat_logprobs([piece.step], self._names(prompt)) if self._body.logprobs else None
        choice = {
            "index": index,
            "delta": {"content": piece.text},
            "logprobs": logprobs,
            "finish_reason": piece.finish_reason,
            **token_ids([piece], wanted=self._body.return_token_ids),
        }
        return envelope.wrap([choice])

    def _names(self, prompt: Prompt) -> TokenNames:
        return TokenNames(prompt.treatment.model.codec, self._body.return_tokens_as_token_ids)


class CompletionShape:
    """The answers of ``/v1/completions``."""

    prefix = "cmpl"
    kind = chunk_kind = "text_completion"

    def __init__(self, body: CompletionBody) -> None:
        self._body = body

    def whole(self, envelope: Envelope, answers: Sequence[Answer]) -> dict[str, Any]:
        """Return the answer to one or more prompts, one choice each."""
        prompt_tokens = sum(len(answer.prompt.ids) for answer in answers)
        completion_tokens = sum(len(answer.pieces) for answer in answers)
        choices = [self._choice(answer, index) for index, answer in enumerate(answers)]
        return envelope.wrap(choices, usage=usage(prompt_tokens, completion_tokens))

    def _choice(self, answer: Answer, index: int) -> dict[str, Any]:
        body, prompt = self._body, answer.prompt
        names = self._names(prompt)
        echoed = prompt.ids if body.echo else ()
        logprobs = None
        if body.logprobs is not None:
            logprobs = completion_logprobs(
                answer.steps, names, echoed=echoed, scores=answer.prompt_scores, k=body.logprobs
            )
        return {
            "index": index,
            "text": prompt.treatment.model.codec.decode(echoed) + answer.text,
            "logprobs": logprobs,
            "finish_reason": answer.finish_reason,
            **token_ids(answer.pieces, wanted=body.return_token_ids),
            **_given(
                prompt_token_ids=list(prompt.ids) if body.return_token_ids else None,
                prompt_logprobs=_prompt_logprobs(body, answer, names),
            ),
        }

    def first(self, envelope: Envelope, prompt: Prompt, index: int) -> dict[str, Any] | None:
        """Return the chunk that opens a stream, if there is something to say before the first token."""
        if not self._body.return_token_ids:
            return None
        choice = {"index": index, "text": "", "logprobs": None, "finish_reason": None}
        return envelope.wrap([{**choice, "prompt_token_ids": list(prompt.ids), "token_ids": []}])

    def chunk(
        self, envelope: Envelope, prompt: Prompt, piece: Piece, *, index: int, offset: int
    ) -> dict[str, Any]:
        """Return the chunk of one token; ``offset`` is the length of the text before it."""
        logprobs = None
        if self._body.logprobs is not None:
            logprobs = completion_logprobs([piece.step], self._names(prompt), offset=offset)
        choice = {
            "index": index,
            "text": piece.text,
            "logprobs": logprobs,
            "finish_reason": piece.finish_reason,
            **token_ids([piece], wanted=self._body.return_token_ids),
        }
        return envelope.wrap([choice])

    def _names(self, prompt: Prompt) -> TokenNames:
        return TokenNames(prompt.treatment.model.codec, self._body.return_tokens_as_token_ids)


def _prompt_logprobs(body: GenerationBody, answer: Answer, names: TokenNames) -> list[Any] | None:
    if body.prompt_logprobs is None or answer.prompt_scores is None:
        return None
    return prompt_logprobs(answer.prompt.ids, answer.prompt_scores, body.prompt_logprobs, names)


def token_ids(pieces: Sequence[Piece], *, wanted: bool) -> dict[str, list[int]]:
    """Return the field of generated token IDs, nothing when it is not wanted."""
    return {"token_ids": [piece.step.token_id for piece in pieces]} if wanted else {}


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
