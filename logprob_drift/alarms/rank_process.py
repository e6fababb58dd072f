"""Is an endpoint further from the reference than honest nights are? Ranks, night after night.

One e-value a night and bucket: the rank of the night's mean log-divergence
among K >= 99 honest whole-night replicates, each with a batch regime of its
own. If the endpoint is honest the rank is uniform, and (K + 1) q(rank) is an
e-value for any q. Buckets are averaged, nights multiplied, candidate starts
summed (docs/methods.md, "Alarms").

Assumes that an honest night could change places with any replicate, and that
nights are drawn anew. Where nothing is random, the same rank would be
multiplied every night: a bucket counts only while its replicates differ and
the endpoint's last 8 nights varied at least 0.6 times as much as they do. That
is known before the night, so leaving a bucket out keeps the e-value one.
Replicates that were drawn once serve many nights only together with the
endpoint's own earlier nights (`ranks_among_all`), since each night would
otherwise repeat their luck. False alarms, simulated, are in
``benchmarks/false_positives.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alarms.restarts import sum_over_starts
from logprob_drift.night import NUMERIC
from ringtrue.alarm_nights import AlarmNights
from ringtrue.e_values import average

Values = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

LEAST_REPLICATES = 99
_TILTS = (8.0, 64.0, 512.0)  # how steeply an alternative prefers the top ranks
_RECENT = 8  # nights that must show an endpoint's own spread
_VARIES = 0.6  # of the replicates' SD; with less, an endpoint's nights are no draws of theirs
_CONSTANT = 1e-9  # replicates closer together than this are constant


def mean_log_divergence(d: Values) -> float | None:
    """Return the number of a night: the mean log of its prompts' divergences (nats, [prompts]).

    Divergences below what two exact computations differ by count as that.
    Nothing measured is ``None``.

    Raises:
        ValueError: a divergence is negative or not finite.
    """
    if not bool(np.all((d >= 0) & np.isfinite(d))):
        raise ValueError("a divergence is negative or not finite")
    return float(np.log(np.maximum(d, NUMERIC)).mean()) if d.size else None


@dataclass(frozen=True, slots=True)
class RankAlarms(AlarmNights):
    """What the nights said of each stream.

    ``e_values`` and ``bucket_evidence`` have shape [streams, nights, buckets],
    all others [streams, nights]. An e-value is NaN where the bucket was not
    measured or its rank would be no evidence. ``evidence`` is M over the
    averaged buckets and ``bucket_evidence`` M of each bucket alone; ``alarm``
    stands from the first night on which M reaches the threshold. ``start`` is
    the night on which the likeliest change begins. ``slope`` is that of the
    log-divergence beyond the replicates' median against log length, NaN with
    fewer than two buckets. ``measured`` and ``differing`` tell the nights with
    a measured bucket and those with one whose replicates differ.
    """

    e_values: Values
    evidence: Values
    bucket_evidence: Values
    alarm: Flags
    start: Indices
    slope: Values
    measured: Flags
    differing: Flags
    lengths: tuple[int, ...]
    threshold: float

    def onset(self, stream: int, night: int) -> int | None:
        """Return the length (tokens) of the first bucket that has reached the threshold by itself."""
        reached = self.bucket_evidence[stream, night] >= self.threshold
        return next((length for length, is_in in zip(self.lengths, reached, strict=True) if is_in), None)

    def unknown(self, stream: int, night: int) -> str | None:
        """Return why this night's ranks are no evidence, as a sentence, or ``None`` where they are."""
        if not bool(np.isnan(self.e_values[stream, night]).all()):
            return None
        if not self.measured[stream, night]:
            return "nothing was measured this night"
        if not self.differing[stream, night]:
            return "honest replicates do not differ, so a rank is no evidence: use the rule of one night"
        return (
            f"the last {_RECENT} nights do not vary as honest ones do (or are not there yet), "
            "so a rank is no evidence: use the rule of one night"
        )


def rank_alarms(
    observed: Values,
    replicates: Values,
    lengths: Sequence[int],
    threshold: float,
    rng: np.random.Generator,
) -> RankAlarms:
    """Return evidence that endpoints lie beyond honest nights.

    ``observed`` has shape [streams, nights, buckets], each the night's
    `mean_log_divergence`, NaN where not measured. ``replicates`` has shape
    [nights, buckets, K] when they are drawn anew for every night, or
    [buckets, K] when they are drawn once. ``lengths`` (tokens, ascending) are
    those of the buckets. ``rng`` breaks ties.

    Raises:
        ValueError: fewer than 99 replicates, one that is not finite, shapes or lengths that do not fit.
    """
    _require(observed, replicates, lengths)
    once = replicates.ndim == 2
    e_values = ranks_among_all(observed, replicates, rng) if once else _fresh(observed, replicates, rng)
    measured = ~np.isnan(observed)
    differing = measured & (np.ptp(replicates, axis=-1) > _CONSTANT)
    varied = _varied(observed, np.std(replicates, axis=-1))
    e_values = np.where(differing & varied, e_values, np.nan)
    summed = sum_over_starts(average(e_values))
    streams, nights, buckets = observed.shape
    alone = sum_over_starts(e_values.transpose(0, 2, 1).reshape(-1, nights)).m
    excess = observed - np.median(replicates, axis=-1)
    return RankAlarms(
        e_values=e_values,
        evidence=summed.m,
        bucket_evidence=alone.reshape(streams, buckets, nights).transpose(0, 2, 1),
        alarm=np.logical_or.accumulate(summed.m >= threshold, axis=1),
        start=summed.since,
        slope=_slopes(excess, np.log(np.asarray(lengths, dtype=np.float64))),
        measured=np.asarray(measured.any(axis=-1)),
        differing=np.asarray(differing.any(axis=-1)),
        lengths=tuple(lengths),
        threshold=threshold,
    )


def ranks_among_all(observed: Values, replicates: Values, rng: np.random.Generator) -> Values:
    """Return e-values, [streams, nights, buckets], where the replicates [buckets, K] were drawn once.

    A night is ranked among the replicates and the stream's own earlier nights.
    If all can change places, these ranks are uniform and independent of one
    another, although the replicates stay the same (Vovk 2021, "Testing
    randomness online").
    """
    streams, nights = observed.shape[:2]
    drawn = np.broadcast_to(replicates, (streams, *replicates.shape))
    pool = np.concatenate([drawn, observed.transpose(0, 2, 1)], axis=-1)
    found = np.full(observed.shape, np.nan)
    for night in range(nights):
        found[:, night] = _e_values(observed[:, night], pool[..., : replicates.shape[1] + night], rng)
    return found


def _fresh(observed: Values, replicates: Values, rng: np.random.Generator) -> Values:
    nights = range(observed.shape[1])
    return np.stack([_e_values(observed[:, night], replicates[night], rng) for night in nights], axis=1)


def _e_values(x: Values, others: Values, rng: np.random.Generator) -> Values:
    """Return (K + 1) q(rank) of ``x``, [...], among ``others``, [..., K]; NaN among them is no night."""
    known = (~np.isnan(others)).sum(axis=-1)
    below = (others < x[..., None]).sum(axis=-1)
    ties = (others == x[..., None]).sum(axis=-1)
    rank = 1 + below + rng.integers(0, ties + 1)
    k = np.broadcast_to(known, rank.shape) + 1.0
    tilted = [tilt / k * np.exp(tilt * (rank / k - 1)) / -np.expm1(-tilt) for tilt in _TILTS]
    # The sum of exp(tilt (r / k - 1)) over r = 1..k, as a geometric series.
    scale = [-np.expm1(-tilt / k) * k / tilt for tilt in _TILTS]
    mixed = np.mean([one * by for one, by in zip(tilted, scale, strict=True)], axis=0)
    return np.asarray(np.where(np.isnan(x), np.nan, k * mixed))


def _varied(observed: Values, spread: Values) -> Flags:
    """Return where the nights before this one varied enough, [streams, nights, buckets]."""
    varied = np.zeros(observed.shape, dtype=np.bool_)
    recent = np.full((observed.shape[0], observed.shape[2], _RECENT), np.nan)
    for night in range(observed.shape[1]):
        now = observed[:, night]
        limit = spread[night] if spread.ndim == 2 else spread
        varied[:, night] = np.std(recent, axis=-1, ddof=1) >= _VARIES * limit
        moved = np.concatenate([recent[..., 1:], now[..., None]], axis=-1)
        recent = np.where(np.isnan(now)[..., None], recent, moved)
    return varied


def _slopes(values: Values, logs: Values) -> Values:
    """Return the least-squares slope over the measured buckets, [streams, nights]."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=-1), 1)
    x = np.where(known, logs, 0.0)
    y = np.where(known, values, 0.0)
    x_apart = np.where(known, x - (x.sum(axis=-1) / count)[..., None], 0.0)
    squares = (x_apart**2).sum(axis=-1)
    enough = known.sum(axis=-1) >= 2
    return np.asarray(np.where(enough, (x_apart * y).sum(axis=-1) / np.where(enough, squares, 1.0), np.nan))


def _require(observed: Values, replicates: Values, lengths: Sequence[int]) -> None:
    expected = observed.shape[1:] if replicates.ndim == 3 else observed.shape[2:]
    if observed.ndim != 3 or replicates.shape[:-1] != expected or len(lengths) != observed.shape[2]:
        raise ValueError(f"{observed.shape} observed, {replicates.shape} replicates, {len(lengths)} lengths")
    if replicates.shape[-1] < LEAST_REPLICATES:
        raise ValueError(f"{replicates.shape[-1]} replicates, where {LEAST_REPLICATES} are needed")
    if not bool(np.isfinite(replicates).all()):
        raise ValueError("a replicate is not finite")
    if list(lengths) != sorted(set(lengths)) or lengths[0] < 1:
        raise ValueError(f"lengths must ascend: {list(lengths)}")
