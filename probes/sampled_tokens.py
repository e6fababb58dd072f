"""Sampled tokens: one token a request at temperature 1, each with a seed and a session of its own.

Short texts as in the context curve. Which of them are asked is decided by
the reference alone (docs/methods.md, "Drawn tokens").
"""

from __future__ import annotations

from probes.context_curve import CurvePrompt, build_prompts
from probes.dialects import Dialect
from ringtrue.endpoint import Reference
from ringtrue.records import Request, Sampling

LENGTHS = (8, 12, 16)  # tokens of a prompt's text
TEMPERATURE = 1.0


def sampled_candidates(reference: Reference, count: int, *, seed: int) -> tuple[CurvePrompt, ...]:
    """Return ``count`` prompts to choose from, of each length in turn; the same arguments give the same.

    Raises:
        ConfigError: they do not fit the model's context.
    """
    share, more = divmod(count, len(LENGTHS))
    buckets = [(length, share + (i < more)) for i, length in enumerate(LENGTHS)]
    return build_prompts(reference, buckets, seed=seed)


def draw_request(
    prompt: CurvePrompt, *, name: str, seed: int, session: str, k: int | None, dialect: Dialect
) -> Request:
    """Ask for one token drawn at temperature 1, with ``k`` logprobs beside it (``None``: none)."""
    return Request(
        id=name,
        messages=prompt.messages,
        sampling=Sampling(temperature=TEMPERATURE, max_tokens=1, seed=seed),
        logprobs=k,
        return_token_ids=dialect.returns_token_ids,
        session=session,
    )
