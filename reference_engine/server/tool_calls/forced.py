"""A text that a constrained decoder makes the model write, as the tokens that it is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from reference_engine.generation import Step
from reference_engine.models.codec import TokenCodec
from reference_engine.scoring import PromptScores


@dataclass(frozen=True, slots=True)
class Forced:
    """What is written in place of what the model would say. ``calls`` tells whether it holds calls."""

    text: str
    calls: bool


def forced_ids(
    forced: Forced, codec: TokenCodec, eos_id: int | None, stops: Sequence[str], max_tokens: int
) -> tuple[tuple[int, ...], str]:
    """Return the tokens of the answer, the one that ends it included, and its finish reason.

    ``max_tokens`` cuts it (``length``), a stop string ends it (``stop``).
    Control tokens of the format count as such where the vocabulary has them.
    """
    found = [at for stop in stops if stop and (at := forced.text.find(stop)) >= 0]
    text = forced.text[: min(found)] if found else forced.text
    ids = codec.encode_prompt(text, add_special_tokens=False)
    whole = ids if (found and ids) or eos_id is None else (*ids, eos_id)
    return (whole[:max_tokens], "length") if len(whole) > max_tokens else (whole, "stop")


def forced_steps(
    ids: Sequence[int], reason: str, scores: PromptScores | None, prompt_length: int, k: int
) -> list[Step]:
    """Return one step a token, the last with the finish reason.

    ``scores`` are those of prompt and answer together, the model's own and not
    those of the constraint; without them logprobs are NaN, which nobody reads.
    """
    steps = [Step(token_id, math.nan) for token_id in ids]
    if scores is not None:
        tops = scores.alternatives(k)[prompt_length - 1 :]
        logprobs = scores.logprobs[prompt_length - 1 :].tolist()
        steps = [
            Step(token_id, logprob, tuple(top))
            for token_id, logprob, top in zip(ids, logprobs, tops, strict=True)
        ]
    return [*steps[:-1], *(dataclasses.replace(step, finish_reason=reason) for step in steps[-1:])]


def scores_of_prompt(scores: PromptScores, length: int) -> PromptScores:
    """Return the part of the scores that a prompt of ``length`` tokens has by itself."""
    return PromptScores(
        scores.logprobs[: length - 1],
        scores.ranks[: length - 1],
        scores.top_ids[: length - 1],
        scores.top_logprobs[: length - 1],
    )
