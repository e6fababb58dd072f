"""How an honest server might have batched: the raw material of the noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reference_engine.batching import BatchLimits

_LARGEST_BATCH = 16
_MOST_SPLITS = 1  # a chunk that attends to a cache costs twice as much, and servers seldom cut more often
_SHORTEST_CHUNK = 16


@dataclass(frozen=True, slots=True)
class JitterBatch:
    """Sequences, by their index, that are prefilled together, and the positions where the prefill is cut."""

    members: tuple[int, ...]
    splits: tuple[int, ...]


def plan_batches(
    lengths: Sequence[int], rng: np.random.Generator, limits: BatchLimits
) -> tuple[JitterBatch, ...]:
    """Divide sequences of these lengths (tokens) into batches, in random order.

    Each sequence is in exactly one batch. Companions, batch sizes and cuts are
    drawn from ``rng``; every batch keeps ``limits``, so that little is padded.
    """
    order = rng.permutation(len(lengths))
    order = order[np.argsort(np.asarray(lengths)[order], kind="stable")]
    batches: list[list[int]] = []
    room = 0
    for index in order.tolist():
        if room and limits.fits([lengths[i] for i in batches[-1]] + [lengths[index]]):
            batches[-1].append(index)
            room -= 1
        else:
            batches.append([index])
            room = int(rng.integers(_LARGEST_BATCH))
    planned = [
        JitterBatch(tuple(members), _draw_splits(max(lengths[i] for i in members), rng))
        for members in batches
    ]
    return tuple(planned[i] for i in rng.permutation(len(planned)))


def _draw_splits(width: int, rng: np.random.Generator) -> tuple[int, ...]:
    if width < 2 * _SHORTEST_CHUNK:
        return ()
    count = int(rng.integers(_MOST_SPLITS + 1))
    cuts = rng.integers(_SHORTEST_CHUNK, width - _SHORTEST_CHUNK + 1, size=count)
    return tuple(sorted(set(cuts.tolist())))
