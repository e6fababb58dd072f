"""Border inputs: short prompts whose first token is nearly a tie, found with the reference alone.

At temperature 0 an honest endpoint answers with one of the tied tokens,
whichever its arithmetic favours; another model has its ties elsewhere
(docs/methods.md, "Border inputs"; after B3IT, arXiv 2602.11083, which finds
its inputs by asking the endpoint).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from probes.context_curve import CurvePrompt, build_prompts
from probes.dialects import Dialect
from ringtrue.endpoint import LogprobRow, Reference
from ringtrue.records import Request, Sampling

LENGTH = 8  # tokens of a prompt's text
SHARE = 0.7  # of the likeliest token's probability that a supported one has: 0.36 nats below it
_AT_ONCE = 64  # rows of a whole vocabulary held at a time


@dataclass(frozen=True, slots=True)
class BorderInput:
    """A prompt near a tie.

    ``ids`` are its expected token IDs. ``tokens`` are the two or more tied
    ones that may come first in an answer, likeliest first; ``probabilities``
    and ``texts`` (without white space around them) belong to them.
    """

    id: str
    messages: tuple[dict[str, str], ...]
    ids: tuple[int, ...]
    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]
    texts: tuple[str, ...]


def border_candidates(
    reference: Reference, count: int, *, seed: int, length: int = LENGTH
) -> tuple[CurvePrompt, ...]:
    """Return the prompts among which ties are looked for; the same arguments give the same ones.

    Raises:
        ConfigError: they do not fit the model's context, or the texts hold too few.
    """
    return build_prompts(reference, [(length, count)], seed=seed)


async def search(
    reference: Reference, candidates: Sequence[CurvePrompt], *, inputs: int
) -> tuple[BorderInput, ...]:
    """Return up to ``inputs`` of the candidates that sit at a tie, in their order.

    Those are taken whose tied tokens hold the least probability together:
    where many others come close, another model's choice is most likely among
    those.
    """
    found: list[BorderInput] = []
    for start in range(0, len(candidates), _AT_ONCE):
        some = candidates[start : start + _AT_ONCE]
        expected = [reference.render(prompt.messages) for prompt in some]
        rows = await asyncio.gather(*(reference.next_token(ids) for ids in expected))
        for prompt, ids, row in zip(some, expected, rows, strict=True):
            at_a_tie = as_input(reference, prompt, ids, row)
            if at_a_tie is not None:
                found.append(at_a_tie)
    flattest = sorted(found, key=lambda one: sum(one.probabilities))[:inputs]
    return tuple(one for one in found if one in flattest)


def as_input(
    reference: Reference, prompt: CurvePrompt, ids: tuple[int, ...], row: LogprobRow
) -> BorderInput | None:
    """Return ``prompt`` as a border input if ``row``, its first token's logprobs, has a tie to use.

    Tied are the tokens with at least `SHARE` times the largest probability.
    All of them must be text, and none begin with another's, so that a client
    who sees text alone can tell them apart.
    """
    chances = np.exp(row.astype(np.float64))
    tied = np.flatnonzero(chances >= SHARE * chances.max())
    tokens = tied[np.argsort(-chances[tied], kind="stable")].tolist()
    texts = [reference.decode([token]) for token in tokens]
    # A special token is spelled out when it is decoded and does not come back from its spelling.
    if len(tokens) < 2 or any(
        reference.encode(text) != (token,) for token, text in zip(tokens, texts, strict=True)
    ):
        return None
    stripped = tuple(text.strip() for text in texts)
    if any(other.startswith(one) for one, other in permutations(stripped, 2)):
        return None
    probabilities = tuple(float(chances[token]) for token in tokens)
    return BorderInput(prompt.id, prompt.messages, ids, tuple(tokens), probabilities, stripped)


def border_request(
    prompt_id: str, messages: tuple[dict[str, str], ...], *, turn: int, dialect: Dialect
) -> Request:
    """Ask for one greedy token in a session of its own, and for its ID where possible."""
    name = f"border-{turn}-{prompt_id}"
    return Request(
        id=name,
        messages=messages,
        sampling=Sampling(temperature=0.0, max_tokens=1),
        return_token_ids=dialect.returns_token_ids,
        session=name,
    )
