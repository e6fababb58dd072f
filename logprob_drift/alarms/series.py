"""An endpoint's top-k rows against its own past, without a reference: one number a night.

A night's rows of one prompt are reduced to the mean logprob of each token,
one that is missing from a row being censored at the night's mean k-th value.
A night's distance is the mean absolute difference of these means from those
of the baseline nights, over the tokens that either lists. A baseline night is
compared with the *others*: with itself included, every later night would lie
further away than any baseline night, and an honest endpoint would seem to
change where its baseline ends.

The rows of one night are not independent, so no number here is a test; the
series of nights is judged by the night detector (docs/methods.md, "Replay").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ringtrue.stats import Values

RESOLUTION = 1e-3
"""Nats; a smaller distance is taken as this: servers round what they print."""


@dataclass(frozen=True, slots=True)
class NightCells:
    """The rows of one prompt in one night: ``n`` of them, all of length ``k``.

    ``tokens`` are ascending; ``sums`` and ``counts``, of the same shape, are
    over the rows that list each. ``kth_sum`` is the sum of the rows' last values.
    """

    k: int
    n: int
    tokens: np.ndarray[tuple[int], np.dtype[np.int32]]
    sums: np.ndarray[tuple[int], np.dtype[np.float32]]
    counts: np.ndarray[tuple[int], np.dtype[np.int32]]
    kth_sum: float

    @property
    def kth(self) -> float:
        """The mean k-th logprob (nats)."""
        return self.kth_sum / self.n

    @property
    def means(self) -> Values:
        """The mean logprob of each listed token (nats), rows without it counted at the k-th value."""
        held = self.sums.astype(np.float64) + (self.n - self.counts) * self.kth
        means: Values = held / self.n
        return means


def cells_of(rows: Sequence[tuple[Sequence[int], Sequence[float]]]) -> NightCells:
    """Reduce rows, each the numbers of its tokens beside their logprobs, best first.

    Raises:
        ValueError: for no rows, or rows of different lengths.
    """
    lengths = {len(tokens) for tokens, _ in rows}
    if len(lengths) != 1:
        raise ValueError(f"needs rows of one length, not of {sorted(lengths)}")
    tokens = np.concatenate([np.asarray(listed, dtype=np.int32) for listed, _ in rows])
    values = np.concatenate([np.asarray(logprobs, dtype=np.float64) for _, logprobs in rows])
    names, places = np.unique(tokens, return_inverse=True)
    return NightCells(
        k=lengths.pop(),
        n=len(rows),
        tokens=names,
        sums=np.bincount(places, weights=values).astype(np.float32),
        counts=np.bincount(places).astype(np.int32),
        kth_sum=math.fsum(logprobs[-1] for _, logprobs in rows),
    )


def merged(one: NightCells, other: NightCells) -> NightCells:
    """Return the cells of both sets of rows together.

    Raises:
        ValueError: when their rows differ in length.
    """
    if one.k != other.k:
        raise ValueError(f"rows of length {one.k} beside rows of length {other.k}")
    names, places = np.unique(np.concatenate([one.tokens, other.tokens]), return_inverse=True)
    sums = np.bincount(places, weights=np.concatenate([one.sums, other.sums]))
    counts = np.bincount(places, weights=np.concatenate([one.counts, other.counts]))
    return NightCells(
        k=one.k,
        n=one.n + other.n,
        tokens=names,
        sums=sums.astype(np.float32),
        counts=counts.astype(np.int32),
        kth_sum=one.kth_sum + other.kth_sum,
    )


def prompt_distances(nights: Sequence[NightCells | None], baseline: int) -> Values:
    """Return the distance of each night (nats), shape [nights]; NaN where the prompt was not asked.

    The first ``baseline`` nights that asked it are its baseline. With fewer
    than two of them nothing can be compared: all NaN.
    """
    found = np.full(len(nights), np.nan)
    asked = [index for index, night in enumerate(nights) if night is not None]
    kept = [night for night in nights if night is not None]
    base = asked[:baseline]
    if len(base) < 2:
        return found
    names = np.unique(np.concatenate([night.tokens for night in kept]))
    values = np.empty((len(kept), len(names)))
    listed = np.zeros((len(kept), len(names)), dtype=np.bool_)
    for row, night in enumerate(kept):
        places = np.searchsorted(names, night.tokens)
        values[row] = night.kth
        values[row, places] = night.means
        listed[row, places] = True
    size = len(base)
    total = values[:size].sum(axis=0)
    expected = np.where(np.arange(len(kept))[:, None] < size, (total - values) / (size - 1), total / size)
    compared = listed | listed[:size].any(axis=0)
    found[asked] = (np.abs(values - expected) * compared).sum(axis=1) / compared.sum(axis=1)
    return found


def night_distances(prompts: Mapping[str, Sequence[NightCells | None]], baseline: int) -> Values:
    """Return one distance a night (nats) over a set of prompts, shape [nights], at least `RESOLUTION`.

    Prompts differ in how much an honest server moves, so a night's number is
    the geometric mean of each prompt's distance over that prompt's typical one
    (the geometric mean over its baseline), times the typical one of all: a
    night that missed some prompts is comparable with one that asked them all.
    NaN where no prompt of the baseline was asked.
    """
    relative = _relative(prompts, baseline)
    asked = np.isfinite(relative.logs).sum(axis=0)
    away = np.nansum(relative.logs, axis=0)
    mean = np.divide(away, asked, out=np.full(len(asked), np.nan), where=asked > 0)
    found: Values = np.exp(mean + relative.typical)
    return found


def worst_distances(prompts: Mapping[str, Sequence[NightCells | None]], baseline: int) -> Values:
    """Return each night's largest distance of a prompt over its typical one, shape [nights], in nats.

    As `night_distances`, with the largest in place of the mean: a fault that
    begins at a length, or meets one kind of prompt, hardly moves the mean of
    many prompts.
    """
    relative = _relative(prompts, baseline)
    logs = np.where(np.isfinite(relative.logs), relative.logs, -np.inf)
    largest = logs.max(axis=0, initial=-np.inf)
    found: Values = np.exp(np.where(np.isfinite(largest), largest, np.nan) + relative.typical)
    return found


@dataclass(frozen=True, slots=True)
class _Relative:
    """Log distances less each prompt's typical one, [prompts, nights], NaN where not asked."""

    logs: Values
    typical: float


def _relative(prompts: Mapping[str, Sequence[NightCells | None]], baseline: int) -> _Relative:
    if not prompts:
        raise ValueError("needs at least one prompt")
    logs = np.stack([_logs(prompt_distances(nights, baseline)) for nights in prompts.values()])
    known = np.isfinite(logs)
    first = known & (np.cumsum(known, axis=1) <= baseline)
    usable = first.any(axis=1)
    logs, first = logs[usable], first[usable]
    if not usable.any():
        return _Relative(logs, np.nan)
    typical = np.where(first, logs, 0.0).sum(axis=1) / first.sum(axis=1)
    return _Relative(logs - typical[:, None], float(typical.mean()))


def _logs(distances: Values) -> Values:
    logs: Values = np.log(np.maximum(distances, RESOLUTION))  # keeps NaN
    return logs
