"""Greedy continuations: short prompts, answered at temperature 0.

An endpoint that shows no logprobs still shows which tokens it prefers
(docs/methods.md, "Greedy margins").
"""

from __future__ import annotations

from probes.context_curve import CurvePrompt, build_prompts
from probes.dialects import Dialect
from ringtrue.endpoint import Reference
from ringtrue.errors import ConfigError
from ringtrue.records import Request, Sampling

LENGTH = 16  # tokens of a prompt's text


def greedy_prompts(
    reference: Reference, count: int, *, tokens: int, seed: int, length: int = LENGTH
) -> tuple[CurvePrompt, ...]:
    """Return ``count`` prompts of ``length`` tokens of text, to be continued by ``tokens`` tokens each.

    The same arguments give the same prompts.

    Raises:
        ConfigError: prompt and answer together are longer than the model's context.
    """
    prompts = build_prompts(reference, [(length, count)], seed=seed)
    longest = max((len(reference.render(prompt.messages)) for prompt in prompts), default=0)
    if longest + tokens > reference.context_length:
        raise ConfigError(
            f"{reference.model} takes {reference.context_length} tokens and a greedy prompt has {longest}",
            where="parts.greedy_tokens",
            remedy=f"Ask for at most {reference.context_length - longest} tokens an answer",
        )
    return prompts


def greedy_request(prompt: CurvePrompt, *, name: str, tokens: int, dialect: Dialect, session: str) -> Request:
    """Ask for a greedy continuation of at most ``tokens`` tokens, and for its token IDs where possible."""
    return Request(
        id=f"{name}-{prompt.id}",
        messages=prompt.messages,
        sampling=Sampling(temperature=0.0, max_tokens=tokens),
        return_token_ids=dialect.returns_token_ids,
        session=session,
    )
