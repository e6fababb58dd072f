"""How far two endpoints differ in valid answers, on the prompts that both were asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringtrue.records import Interval
from ringtrue.stats import RESAMPLES, Values, resampled_interval
from toolcall_validator.metrics import LEVEL, difference_interval
from toolcall_validator.tally import Tally


@dataclass(frozen=True, slots=True)
class Difference:
    """The request validity of one endpoint minus that of another, over the ``prompts`` they share."""

    value: float
    interval: Interval
    prompts: int


def difference(one: Tally, other: Tally, rng: np.random.Generator) -> Difference | None:
    """Return the difference with its 95 % interval, ``None`` where no prompt is shared.

    A prompt's answers are a cluster: whole prompts are drawn again
    (`ringtrue.stats.resampled_interval`). Where all prompts differ by the same,
    or are too few to be drawn from, that has no width or no meaning, and
    `difference_interval` of what is better and what is worse takes its place.
    """
    mine, theirs = one.valid_by_prompt, other.valid_by_prompt
    shared = sorted(mine.keys() & theirs.keys())
    if not shared:
        return None
    apart = np.array([mine[prompt] - theirs[prompt] for prompt in shared])
    drawn = _drawn(apart, rng) if np.ptp(apart) > 0 else None
    if drawn is None:
        better, worse = float(apart.clip(min=0).sum()), float((-apart).clip(min=0).sum())
        drawn = difference_interval(better, worse, len(shared))
    return Difference(float(apart.mean()), drawn, len(shared))


def _drawn(apart: Values, rng: np.random.Generator) -> Interval | None:
    # Prompts that differ by the same are alike: it is enough to draw how many of each kind there are.
    kinds, counts = np.unique(apart, return_counts=True)
    drawn = rng.multinomial(len(apart), counts / len(apart), size=RESAMPLES)
    return resampled_interval(drawn @ kinds / len(apart), len(apart), LEVEL)
