"""Series of recorded numbers: means of metrics and of log lengths, and shares of what is either 0 or 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from evals.replay.batches import Batch, EndpointSeries, Numbers
from evals.replay.watched import Shares, Stream
from logprob_drift.alarms.metric import Metric, Scale

FINEST = 30  # decimal places that are taken seriously
_UNEVEN = 4.0  # a batch with so many times fewer requests than usual is none

_Held = tuple[Batch, Mapping[str, Numbers]]  # a batch and one metric's numbers in it, by prompt


def lengths(series: EndpointSeries, baseline: int) -> Iterable[Stream]:
    """Yield the mean log length of answers that are not empty; lengths are in characters."""
    held = [(batch, batch.log_length) for batch in series.in_time() if batch.log_length]
    if held:
        yield _means(series.endpoint, "log length", held, baseline, Metric(0.01, unit="log characters"))


def rates(series: EndpointSeries) -> Iterable[Shares]:
    """Yield the shares of answers that are empty or loop, and every metric whose values are all 0 or 1."""
    texts = tuple(batch for batch in series.in_time() if batch.empty.n)
    if texts:
        yield _shares(series.endpoint, "empty answers", texts, [b.empty for b in texts])
        yield _shares(series.endpoint, "looping answers", texts, [b.looping for b in texts])
    for name, held in _by_metric(series).items():
        if _is_rate(held):
            batches = tuple(batch for batch, _ in held)
            yield _shares(series.endpoint, name, batches, [_pooled(numbers) for _, numbers in held])


def values_of(series: EndpointSeries, baseline: int, logged: frozenset[str]) -> Iterable[Stream]:
    """Yield the mean of every other recorded metric, read on the log scale where ``logged`` names it.

    No number is believed to be finer than it was written, over the root of
    how many there are in a batch.
    """
    for name, held in _by_metric(series).items():
        if _is_rate(held):
            continue
        first = [_pooled(numbers) for _, numbers in held[:baseline]]
        step = 10.0 ** -min(FINEST, max(numbers.decimals for numbers in first))
        resolution = step / float(np.sqrt(np.median([numbers.n for numbers in first])))
        scale = Scale.LOG if name in logged else Scale.LINEAR
        yield _means(series.endpoint, name, held, baseline, Metric(resolution, scale))


def _by_metric(series: EndpointSeries) -> dict[str, list[_Held]]:
    batches = series.in_time()
    names = dict.fromkeys(name for batch in batches for name in batch.values)
    return {name: [(b, b.values[name]) for b in batches if name in b.values] for name in names}


def _pooled(numbers: Mapping[str, Numbers]) -> Numbers:
    found = Numbers()
    for one in numbers.values():
        found.n += one.n
        found.total += one.total
        found.rates += one.rates
        found.decimals = max(found.decimals, one.decimals)
    return found


def _is_rate(held: Sequence[_Held]) -> bool:
    return all(one.rates == one.n for _, numbers in held for one in numbers.values())


def _shares(endpoint: str, name: str, batches: tuple[Batch, ...], numbers: Sequence[Numbers]) -> Shares:
    hits = np.array([number.total for number in numbers])
    return Shares(endpoint, name, batches, tuple(number.n for number in numbers), hits)


def _means(endpoint: str, name: str, held: Sequence[_Held], baseline: int, metric: Metric) -> Stream:
    """Return the means of batches, less what their prompts usually give beyond the mean of all.

    A batch that lost some of its prompts is then still comparable.
    """
    pooled = [_pooled(numbers) for _, numbers in held]
    usual = float(np.median([numbers.n for numbers in pooled[:baseline]]))
    effects = _effects([numbers for _, numbers in held[:baseline]])
    values = np.full(len(held), np.nan)
    for at, (all_of, (_, numbers)) in enumerate(zip(pooled, held, strict=True)):
        if all_of.n * _UNEVEN >= usual and np.isfinite(all_of.total):
            beyond = sum(one.n * effects.get(prompt, 0.0) for prompt, one in numbers.items())
            values[at] = (all_of.total - beyond) / all_of.n
    batches, requests = tuple(batch for batch, _ in held), tuple(numbers.n for numbers in pooled)
    negative = metric.scale is Scale.LOG and bool((values < 0).any())
    unknown = "a value is negative, and this metric is read on the log scale" if negative else ""
    return Stream(endpoint, name, batches, requests, values, metric, unknown)


def _effects(base: Sequence[Mapping[str, Numbers]]) -> dict[str, float]:
    """Return by how much each prompt's usual value differs from the mean of all.

    Only for prompts of at least half of the baseline: one that was asked once
    would take the whole spread out of its batch.
    """
    asked = Counter(prompt for numbers in base for prompt in numbers)
    usual = [prompt for prompt, times in asked.items() if 2 * times >= len(base)]
    means = {p: _pooled({str(at): ns[p] for at, ns in enumerate(base) if p in ns}).mean for p in usual}
    centre = float(np.mean(list(means.values()))) if means else 0.0
    found = {prompt: mean - centre for prompt, mean in means.items()}
    return found if np.isfinite(centre) else {}
