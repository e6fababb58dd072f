"""What the detectors watch: a series of numbers, shares or states, one entry a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evals.replay.batches import Batch
from logprob_drift.alarms.metric import Metric
from ringtrue.stats import Values


@dataclass(frozen=True, slots=True)
class Watched:
    """What every series of a detector has.

    ``series`` says which of the detector's series it is. ``batches`` are in
    order of time, and ``requests`` counts those of each that it is made of.
    """

    endpoint: str
    series: str
    batches: tuple[Batch, ...]
    requests: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stream(Watched):
    """One number a batch, for the night detector.

    ``values`` has one for each batch, in ``metric.unit``; NaN where there was
    too little to measure. ``unknown`` says why nothing could be measured at all.
    """

    values: Values
    metric: Metric
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Shares(Watched):
    """Events among the requests of each batch: ``hits`` of shape [batches]."""

    hits: Values


@dataclass(frozen=True, slots=True)
class States(Watched):
    """The numeric states that one prompt showed, request by request, in each batch."""

    held: tuple[Sequence[int], ...]
