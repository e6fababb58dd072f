"""Divergence against prompt length: a summary per bucket, and the onset of a long-context fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from logprob_drift.night import (
    BUCKET_NEEDS,
    FEW_NEED,
    NUMERIC,
    POOL_NEEDS,
    Night,
    Values,
    gross_limit,
    one_bucket,
    pooled,
)
from ringtrue.records import DRIFT, State


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt's divergence D and floor F (nats), in the bucket of its length (tokens)."""

    bucket: int
    d: float
    f: float
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    """One length of the curve and what the rule of one night says of it."""

    length: int
    night: Night
    gross: int  # prompts whose D is beyond the gross limit
    nights: int = 1  # whose prompts these are, this one included
    turning: bool = False  # whether its prompts are others each night

    @property
    def clean(self) -> bool:
        """Whether this bucket shows that the fault is absent here."""
        return self.night.state is State.OK


@dataclass(frozen=True, slots=True)
class Curve:
    """The whole curve.

    ``onset`` is the length of the first bucket of a fault that is absent
    below it and present from it on. ``below`` is the rule over all prompts
    below the onset, over all prompts when there is none. ``slope`` is that of
    log D against log length (``None`` with fewer than two lengths).
    """

    buckets: tuple[Bucket, ...]
    onset: int | None
    below: Night
    gross: float
    slope: float | None

    @property
    def beyond(self) -> Bucket | None:
        """The first faulty bucket."""
        return next((b for b in self.buckets if b.length == self.onset), None)

    @property
    def everywhere(self) -> bool:
        """Whether every bucket that could be judged is beyond the floor."""
        judged = [b for b in self.buckets if b.night.state is not State.UNKNOWN]
        return bool(judged) and all(b.night.state in DRIFT for b in judged)

    @property
    def open(self) -> tuple[Bucket, ...]:
        """Buckets that leave a long-context fault possible: too few prompts, or some gross and some not."""
        return tuple(
            b for b in self.buckets if b.night.state is State.UNKNOWN and (b.night.n < FEW_NEED or b.gross)
        )


NOTHING_EARLIER: Mapping[int, Sequence[Row]] = {}


def trace(
    rows: Sequence[Row],
    lengths: Sequence[int],
    rng: np.random.Generator,
    *,
    earlier: Mapping[int, Sequence[Row]] = NOTHING_EARLIER,
) -> Curve:
    """Return the curve over ``lengths``; a length without rows becomes an UNKNOWN bucket, never a zero.

    ``earlier`` has a key for each length whose prompts take turns, and one row
    for each night before this one, the newest last: the smallest D and the mean
    F of that night's prompts. Where this night alone has fewer prompts than
    `FEW_NEED`, the newest of them fill up its bucket, and nothing else.
    """
    gross = gross_limit(np.array([row.f for row in rows]))
    buckets = tuple(
        _bucket([row for row in rows if row.bucket == length], length, gross, rng, earlier.get(length))
        for length in sorted(lengths)
    )
    onset = _onset(buckets)
    kept = [row for row in rows if onset is None or row.bucket < onset]
    d, f = _columns(kept)
    return Curve(buckets, onset, _below(d, f, buckets, onset, rng), gross, _slope(rows))


def _below(
    d: Values, f: Values, buckets: Sequence[Bucket], onset: int | None, rng: np.random.Generator
) -> Night:
    night = pooled(d, f, rng)
    if night.state is not State.UNKNOWN:
        return night
    # Too few for the pool: a bucket may still show a fault on its own, and below an onset
    # clean buckets of their own are as good as a pool of the same size.
    alone = [b for b in buckets if onset is None or b.length < onset]
    faulty = [b.night for b in alone if b.night.state in DRIFT]
    if faulty:
        return faulty[0]
    if onset is not None and d.shape[0] >= BUCKET_NEEDS:
        return pooled(d, f, rng, needs=BUCKET_NEEDS)
    return night


def _bucket(
    rows: Sequence[Row],
    length: int,
    gross: float,
    rng: np.random.Generator,
    earlier: Sequence[Row] | None,
) -> Bucket:
    lacking = max(0, FEW_NEED - len(rows)) if rows and earlier else 0
    filled = list(earlier or ())[-lacking:] if lacking else []
    d, f = _columns([*filled, *rows])
    night = one_bucket(d, f, gross, rng)
    return Bucket(length, night, int((d > gross).sum()), 1 + len(filled), earlier is not None)


def _columns(rows: Sequence[Row]) -> tuple[Values, Values]:
    return (
        np.array([row.d for row in rows], dtype=np.float64),
        np.array([row.f for row in rows], dtype=np.float64),
    )


def _onset(buckets: Sequence[Bucket]) -> int | None:
    """Return the first faulty length, if a bucket below it is clean and none beyond it is."""
    faulty = [i for i, bucket in enumerate(buckets) if bucket.night.state in DRIFT]
    if not faulty:
        return None
    first = faulty[0]
    below, beyond = buckets[:first], buckets[first:]
    if any(bucket.clean for bucket in below) and not any(bucket.clean for bucket in beyond):
        return buckets[first].length
    return None


def _slope(rows: Sequence[Row]) -> float | None:
    lengths = sorted({row.bucket for row in rows})
    if len(lengths) < 2:
        return None
    means = [np.mean([row.d for row in rows if row.bucket == length]) for length in lengths]
    return float(np.polyfit(np.log(lengths), np.log(np.maximum(means, NUMERIC)), 1)[0])


def missing(night: Night) -> int:
    """Return how many more prompts an answer needs."""
    return max(0, (night.needed or POOL_NEEDS) - night.n)
