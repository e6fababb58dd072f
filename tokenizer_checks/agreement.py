"""All prompts of an examination: are the IDs the model's own, cut beyond a length, or others?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ringtrue.causes import Ids
from tokenizer_checks.comparison import Comparison, Kind

FEW = 4  # prompts below a length that must be right before a cut is the length's fault
OWN_TOKENS = 0.5  # share of expected IDs below which the vocabulary is another one


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt's comparison, in the bucket of its length (tokens)."""

    bucket: int
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Agreement:
    """What all prompts together say.

    ``ids`` is ``None`` when the server showed neither IDs nor counts.
    ``differing`` of ``seen`` prompts differ. ``onset`` is the first bucket
    that is cut, ``kept`` the greatest number of tokens that a cut prompt kept.
    ``counted`` is true when only counts were compared. ``example`` is the
    shortest differing prompt.
    """

    ids: Ids | None
    seen: int
    differing: int
    onset: int | None = None
    kept: int | None = None
    counted: bool = False
    example: Comparison | None = None


def agree(asked: Sequence[Asked]) -> Agreement:
    """Return what the comparisons of all prompts say together."""
    shown = [item for item in asked if item.comparison.kind is not Kind.UNSEEN]
    if not shown:
        return Agreement(None, 0, 0)
    counted = any(item.comparison.kind in (Kind.SAME_COUNT, Kind.OTHER_COUNT) for item in shown)
    wrong = [item for item in shown if not item.comparison.same]
    if not wrong:
        return Agreement(Ids.EQUAL, len(shown), 0, counted=counted)
    example = min(wrong, key=lambda item: item.comparison.expected).comparison
    onset = _cut_from(shown)
    if onset is not None:
        kept = max(item.comparison.used or 0 for item in wrong)
        return Agreement(Ids.CUT_BEYOND, len(shown), len(wrong), onset, kept, counted, example)
    ids = Ids.OTHER_VOCABULARY if _other_vocabulary(wrong) else Ids.DIFFERENT
    return Agreement(ids, len(shown), len(wrong), counted=counted, example=example)


def _cut_from(shown: Sequence[Asked]) -> int | None:
    """Return the bucket from which every prompt is cut, if all below it are right."""
    wrong = [item for item in shown if not item.comparison.same]
    onset = min(item.bucket for item in wrong)
    below = [item for item in shown if item.bucket < onset]
    beyond = [item for item in shown if item.bucket >= onset]
    shorter = all(_lost_tokens(item.comparison) for item in beyond)
    return onset if shorter and len(below) >= FEW else None


def _lost_tokens(comparison: Comparison) -> bool:
    if comparison.kind is Kind.CUT:
        return True
    return comparison.kind is Kind.OTHER_COUNT and (comparison.used or 0) < comparison.expected


def _other_vocabulary(wrong: Sequence[Asked]) -> bool:
    foreign = [item for item in wrong if (item.comparison.shared or 0.0) < OWN_TOKENS]
    told = [item for item in wrong if item.comparison.shared is not None]
    return bool(told) and len(foreign) * 2 > len(told)
