"""The same prompt twice: once when no cache can know it, and once when one should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from probes.context_curve import CurvePrompt, build_prompts, to_request
from probes.dialects import Dialect
from ringtrue.endpoint import Reference
from ringtrue.records import Exchange, Request

LENGTH = 1_024  # tokens of a prompt's text


@dataclass(frozen=True, slots=True)
class Pair:
    """Both answers to one prompt; either may be missing."""

    cold: Exchange | None = None
    warm: Exchange | None = None

    @property
    def shown_warm(self) -> bool:
        """Whether the server says that it took more of the second prompt from its cache than of the first."""
        return _cached(self.warm) > _cached(self.cold)


def cache_prompts(
    reference: Reference, count: int, *, seed: int, length: int = LENGTH
) -> tuple[CurvePrompt, ...]:
    """Return ``count`` prompts of about ``length`` tokens, none where the model takes no such prompt.

    The same arguments give the same.

    Raises:
        ConfigError: the texts have too few different slices of that length.
    """
    overhead = len(reference.render([{"role": "user", "content": ""}]))
    if length + overhead >= reference.context_length:
        return ()
    return build_prompts(reference, [(length, count)], seed=seed)


def cache_request(prompt: CurvePrompt, turn: str, key: str, *, k: int, dialect: Dialect) -> Request:
    """Ask one prompt in the session ``key``; ``turn`` is ``cold`` or ``warm`` and goes into the name."""
    return replace(to_request(prompt, k=k, dialect=dialect), id=f"{turn}-{prompt.id}", session=key)


def shown_warm(pairs: Sequence[Pair]) -> int:
    """Return how many pairs are known to have been cold and then warm."""
    return sum(pair.shown_warm for pair in pairs)


def _cached(exchange: Exchange | None) -> int:
    usage = exchange.usage if exchange is not None else None
    return usage.cached_tokens or 0 if usage is not None else 0
