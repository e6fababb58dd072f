"""What a reader has to know of a recording: gaps, clocks, names and k that changed, lines left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from evals.replay.batches import Batch, EndpointSeries
from evals.replay.reading import Recording

_GAP = 1.5  # usual times between two batches, beyond which one is missing


def notes_on(recording: Recording) -> tuple[str, ...]:
    """Return a sentence for each thing that a reader has to know."""
    series = [recording.endpoints[name] for name in sorted(recording.endpoints)]
    found = [note for one in series for note in _of_one(one, recording)]
    if recording.repeated:
        found.append(f"{recording.repeated} lines repeat another of their batch and count once")
    return (*found, *_renamed(series))


def _of_one(series: EndpointSeries, recording: Recording) -> Iterator[str]:
    batches = series.in_time()
    if (times := recording.backwards[series.endpoint]) > 0:
        yield (
            f"{series.endpoint}: the clock ran backwards ({times} times over its prompts and metrics); "
            "batches are in the order of t, and a change may be dated wrongly"
        )
    gaps = [two.at - one.at for one, two in pairwise(batches)]
    missing = sum(gap > _GAP * median(gaps) for gap in gaps) if gaps else 0
    if missing:
        yield f"{series.endpoint}: batches are missing in {missing} places; they are skipped"
    yield from _lengths_changed(series.endpoint, batches)
    if left_out := sum(batch.left_out for batch in batches):
        yield f"{series.endpoint}: {left_out} rows are left out: most of their batch have another length"


def _lengths_changed(endpoint: str, batches: Sequence[Batch]) -> Iterator[str]:
    rows = [batch for batch in batches if batch.k is not None]
    for one, two in pairwise(rows):
        if one.k != two.k:
            yield (
                f"{endpoint}: k changed from {one.k} to {two.k} at batch {two.key}; "
                "rows of each k have a baseline of their own"
            )


def _renamed(series: Sequence[EndpointSeries]) -> Iterator[str]:
    spans = {one.endpoint: (one.in_time()[0].at, one.in_time()[-1].at) for one in series}
    for old, (_, end) in spans.items():
        after = {name: start for name, (start, _) in spans.items() if start > end}
        if after:
            new = min(after, key=lambda name: (after[name], name))
            yield (
                f"{new} begins after {old} ends. They are judged as two endpoints; "
                "if one was renamed, give both parts one name"
            )
