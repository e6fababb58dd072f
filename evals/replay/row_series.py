"""Series of recorded top-k rows: distances from the endpoint's own baseline, and numeric states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from evals.replay.batches import Batch, EndpointSeries
from evals.replay.watched import States, Stream
from logprob_drift.alarms.metric import Metric, Scale
from logprob_drift.alarms.series import RESOLUTION, NightCells, night_distances, worst_distances

_UNEVEN = 1.5  # a distance depends on the number of requests: they must be nearly equal


def distances(series: EndpointSeries, baseline: int) -> Iterable[Stream]:
    """Yield the distance of top-k rows from the endpoint's own baseline (nats), one stream for each k.

    With several prompts there is a second one, of the prompt that is farthest
    off: a fault beyond a length hardly moves the mean of many prompts.

    A provider that changes k begins a new stream: rows of other lengths are
    censored elsewhere, and what lies between would pass for a change.
    """
    for k, batches in _by_k(series).items():
        prompts = dict.fromkeys(prompt for batch in batches for prompt in batch.cells)
        nights = {prompt: _even([b.cells.get(prompt) for b in batches], baseline) for prompt in prompts}
        values = night_distances(nights, baseline)
        requests = tuple(sum(cells.n for cells in batch.cells.values()) for batch in batches)
        metric = Metric(RESOLUTION, Scale.LOG, "nats")
        yield Stream(series.endpoint, f"k={k}", batches, requests, values, metric)
        if len(prompts) > 1:
            worst = worst_distances(nights, baseline)
            yield Stream(series.endpoint, f"k={k}, worst prompt", batches, requests, worst, metric)


def states(series: EndpointSeries) -> Iterable[States]:
    """Yield the states of each prompt, one series for each k."""
    for k, batches in _by_k(series).items():
        prompts = dict.fromkeys(prompt for batch in batches for prompt in batch.states)
        for number, prompt in enumerate(prompts, start=1):
            kept = tuple(batch for batch in batches if prompt in batch.states)
            held = tuple(batch.states[prompt] for batch in kept)
            requests = tuple(len(some) for some in held)
            yield States(series.endpoint, f"k={k}, prompt {number}", kept, requests, held)


def _by_k(series: EndpointSeries) -> dict[int, tuple[Batch, ...]]:
    found: dict[int, tuple[Batch, ...]] = {}
    for batch in series.in_time():
        if batch.k is not None:
            found[batch.k] = (*found.get(batch.k, ()), batch)
    return found


def _even(nights: Sequence[NightCells | None], baseline: int) -> list[NightCells | None]:
    """Return the nights without those whose number of rows is far from the baseline's."""
    counts = [night.n for night in nights if night is not None][:baseline]
    usual = float(np.median(counts))
    low, high = usual / _UNEVEN, usual * _UNEVEN
    return [night if night is not None and low <= night.n <= high else None for night in nights]
