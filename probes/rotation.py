"""Prompts of rare lengths, taken in turns: what one night can't afford, several nights ask.

A length with too few prompts a night for any statement takes other prompts each
night. Nights in a row then hold as many different prompts as a statement needs,
at the price of a few a night.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from logprob_drift.night import FEW_NEED
from probes.context_curve import LANGUAGES, CurvePrompt, build_prompts, load_text
from ringtrue.endpoint import Reference


@dataclass(frozen=True, slots=True)
class Tonight:
    """The context curve's prompts of one night.

    ``steady`` are the same every night. ``turning`` are this turn's of the
    lengths whose prompts take turns; ``turns`` (64 hex digits, empty where
    nothing turns) names what they are drawn from, the same every night.
    """

    steady: tuple[CurvePrompt, ...]
    turning: tuple[CurvePrompt, ...] = ()
    turns: str = ""

    @property
    def prompts(self) -> tuple[CurvePrompt, ...]:
        """All of them, the shorter lengths first."""
        return tuple(sorted((*self.steady, *self.turning), key=lambda prompt: prompt.bucket))


def prompts_tonight(
    reference: Reference,
    buckets: Sequence[tuple[int, int]],
    *,
    seed: int,
    turn: int,
    turns: int,
    languages: Sequence[str] = LANGUAGES,
) -> Tonight:
    """Cut the prompts of all buckets, each a pair of length (tokens) and number of prompts a night.

    A bucket with fewer than `FEW_NEED` prompts has ``turns`` sets of them;
    night ``turn`` (counted in days) asks one, and ``turns`` nights in a row ask
    each once. With ``turns`` of 1 nothing turns. The same arguments give the
    same prompts.

    Raises:
        ConfigError: a bucket does not fit the model's context or the texts.
    """
    rare = [bucket for bucket in buckets if bucket[1] < FEW_NEED and turns > 1]
    steady = build_prompts(
        reference, [bucket for bucket in buckets if bucket not in rare], seed=seed, languages=languages
    )
    if not rare:
        return Tonight(steady)
    at = turn % turns
    # Languages take turns over the nights too, as they do over the prompts of a steady bucket.
    shifted = [*languages[at % len(languages) :], *languages[: at % len(languages)]]
    turning = build_prompts(reference, rare, seed=_seed_of(seed, at), languages=shifted)
    texts = [hashlib.sha256(load_text(language).encode()).hexdigest() for language in languages]
    drawn_from = (reference.fingerprint, rare, seed, turns, list(zip(languages, texts, strict=True)))
    return Tonight(steady, turning, hashlib.sha256(repr(drawn_from).encode()).hexdigest())


def _seed_of(seed: int, turn: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {turn}".encode()).digest()[:8], "big")
