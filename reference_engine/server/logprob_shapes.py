"""Logprobs as JSON: OpenAI's chat form, the legacy completions form, and vLLM's prompt form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from reference_engine.generation import Step
from reference_engine.models.codec import TokenCodec
from reference_engine.scoring import PromptScores

Alternatives = Iterable[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class TokenNames:
    """How tokens are named in an answer: by their text, or as ``token_id:N``."""

    codec: TokenCodec
    as_ids: bool = False

    def text(self, token_id: int) -> str:
        """The token's text; bytes that are not text by themselves become U+FFFD."""
        return self.codec.token_bytes(token_id).decode("utf-8", errors="replace")

    def name(self, token_id: int) -> str:
        """The token as the answer names it."""
        return f"token_id:{token_id}" if self.as_ids else self.text(token_id)


def chat_logprobs(steps: Sequence[Step], names: TokenNames) -> dict[str, Any]:
    """``choices[].logprobs`` of a chat: the sampled token's own entry, exactly k alternatives beside it."""
    return {"content": [_chat_position(step, names) for step in steps]}


def _chat_position(step: Step, names: TokenNames) -> dict[str, Any]:
    top = [_entry(token_id, logprob, names) for token_id, logprob in step.top]
    return {**_entry(step.token_id, step.logprob, names), "top_logprobs": top}


def _entry(token_id: int, logprob: float, names: TokenNames) -> dict[str, Any]:
    return {
        "token": names.name(token_id),
        "logprob": logprob,
        "bytes": list(names.codec.token_bytes(token_id)),
    }


def completion_logprobs(
    steps: Sequence[Step],
    names: TokenNames,
    *,
    echoed: Sequence[int] = (),
    scores: PromptScores | None = None,
    k: int = 0,
    offset: int = 0,
) -> dict[str, Any]:
    """``choices[].logprobs`` of a completion.

    ``echoed`` prompt tokens come first, the very first of them without a
    logprob, and list ``k`` alternatives. ``offset`` is the length, in characters, of the text before these
    tokens. The sampled token is in its position's dictionary even when it is
    not among the k likeliest.
    """
    token_ids = [*echoed, *(step.token_id for step in steps)]
    logprobs: list[float | None] = [None] if echoed else []
    tops: list[dict[str, float] | None] = [None] if echoed else []
    if scores is not None and echoed:
        for token_id, logprob, top in zip(
            echoed[1:], scores.logprobs.tolist(), scores.alternatives(k), strict=True
        ):
            logprobs.append(logprob)
            tops.append(_top_dict(top, token_id, logprob, names))
    for step in steps:
        logprobs.append(step.logprob)
        tops.append(_top_dict(step.top, step.token_id, step.logprob, names))
    special = names.codec.is_special
    lengths = [len(names.text(token_id)) for token_id in echoed]
    lengths += [0 if special(step.token_id) else len(names.text(step.token_id)) for step in steps]
    return {
        "tokens": [names.name(token_id) for token_id in token_ids],
        "token_logprobs": logprobs,
        "top_logprobs": tops,
        "text_offset": list(accumulate(lengths, initial=offset))[:-1],
    }


def _top_dict(top: Alternatives, token_id: int, logprob: float, names: TokenNames) -> dict[str, float]:
    # Several tokens can have one text (lone bytes do); the likeliest then keeps the key.
    by_name: dict[str, float] = {}
    for other, value in top:
        by_name.setdefault(names.name(other), value)
    by_name.setdefault(names.name(token_id), logprob)
    return by_name


def prompt_logprobs(ids: Sequence[int], scores: PromptScores, k: int, names: TokenNames) -> list[Any]:
    """``prompt_logprobs`` as vLLM has it: null, then ``{id: {logprob, rank, decoded_token}}`` a position."""
    positions: list[Any] = [None]
    for token_id, logprob, rank, top in zip(
        ids[1:], scores.logprobs.tolist(), scores.ranks.tolist(), scores.alternatives(k), strict=True
    ):
        listed = {other: (value, place) for place, (other, value) in enumerate(top, start=1)}
        listed.setdefault(token_id, (logprob, rank))
        positions.append(
            {
                str(other): {"logprob": value, "rank": place, "decoded_token": names.text(other)}
                for other, (value, place) in listed.items()
            }
        )
    return positions
