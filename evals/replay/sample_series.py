"""Series of recorded answers: how far a batch's lie from the baseline's, word by word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from evals.replay.batches import EndpointSeries
from evals.replay.watched import Stream
from logprob_drift.alarms.metric import Metric
from logprob_drift.token_only.samples import PAD, night_series

WORDS = 50  # of an answer
_MMD2 = Metric(1e-4, unit="MMD^2")


def samples(series: EndpointSeries, baseline: int) -> Iterable[Stream]:
    """Yield MMD^2 of each batch's answers against the baseline's, over words.

    The prompts are those that every baseline batch asked at least twice.
    """
    batches = tuple(batch for batch in series.in_time() if batch.texts)
    if not batches:
        return
    base = batches[:baseline]
    values = np.full(len(batches), np.nan)
    stream = Stream(series.endpoint, "MMD^2", batches, tuple(b.empty.n for b in batches), values, _MMD2)
    if len(base) < baseline:
        yield replace(stream, unknown=f"{len(base)} of {baseline + 1} nights measured")
        return
    prompts = [prompt for prompt in base[0].texts if all(len(b.texts.get(prompt, ())) > 1 for b in base)]
    if not prompts:
        yield replace(stream, unknown="no prompt was answered at least twice in each batch of the baseline")
        return
    count = min(len(b.texts[prompt]) for b in base for prompt in prompts)
    whole = [all(len(b.texts.get(prompt, ())) >= count for prompt in prompts) for b in batches]
    words = _Words()
    kept = [b for b, complete in zip(batches, whole, strict=True) if complete]
    nights = np.array([[[words.of(t) for t in b.texts[prompt][:count]] for prompt in prompts] for b in kept])
    values[np.array(whole)] = night_series(nights, baseline)
    yield stream


class _Words:
    """Numbers words, so that answers can be compared position by position."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, text: str) -> list[int]:
        numbers = [self._numbers.setdefault(word, len(self._numbers)) for word in text.split()[:WORDS]]
        return numbers + [PAD] * (WORDS - len(numbers))
