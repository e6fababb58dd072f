"""Sessions: a few short prompts, asked again and again, each time as somebody else.

A session is a new connection with a cache key that was never used, so that a
balancer chooses a backend for it anew (docs/methods.md, "Mixtures").
"""

from __future__ import annotations

from dataclasses import replace

from probes.context_curve import CurvePrompt, build_prompts, to_request
from probes.dialects import Dialect
from ringtrue.endpoint import Reference
from ringtrue.records import Request

LENGTH = 16  # tokens of a prompt's text
CANDIDATES = 8  # prompts to choose the fingerprint from


def candidate_prompts(
    reference: Reference, count: int, *, seed: int, length: int = LENGTH
) -> tuple[CurvePrompt, ...]:
    """Return the prompts that a fingerprint is chosen from; the same arguments give the same.

    Raises:
        ConfigError: they do not fit the model's context.
    """
    return build_prompts(reference, [(length, count)], seed=seed)


def session_request(prompt: CurvePrompt, key: str, *, k: int, dialect: Dialect) -> Request:
    """Ask one prompt of the session ``key``; the request's name tells both."""
    return replace(to_request(prompt, k=k, dialect=dialect), id=f"{key}-{prompt.id}", session=key)
