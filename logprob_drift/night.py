"""The rule of one night: is this endpoint beyond the noise floor? (docs/methods.md, "The rule of one night").

D is the endpoint's divergence from the reference and F an honest server's,
both in nats, the same truncated statistic on the same prompts. The rule
answers with a state, an interval, and the smallest effect it could have seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringtrue.records import Interval, State
from ringtrue.stats import mean_interval, ratio_interval, smallest_value_limit

RATIO = 1.5  # mean D / mean F beyond which an endpoint is CHANGED
TOLERANCE = 0.02  # nats; mean D beyond which it is WORSE: between published 5-bit and 4-bit figures
POOL_NEEDS = 64  # prompts for an answer over all buckets
BUCKET_NEEDS = 16  # prompts for an answer in one bucket
FEW_NEED = 4  # prompts for an answer about gross faults only
GROSS = 10.0  # times the 99th percentile of the per-prompt floor
NUMERIC = 1e-7  # nats; with a floor of zero, more than two exact computations may differ by

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Night:
    """What one night says of one pool of prompts.

    ``interval`` is that of mean D (nats) and ``ratio`` that of mean D / mean F,
    both with one-sided 99 % limits; ``detectable`` is the smallest mean D
    (nats) that this many prompts with this spread would have shown as CHANGED.
    ``needed`` is the number of prompts for an answer, with ``state`` UNKNOWN.
    """

    state: State
    n: int
    mean_d: float | None
    mean_f: float | None
    interval: Interval | None
    ratio: Interval | None
    detectable: float | None
    needed: int


def gross_limit(floor: Values) -> float:
    """Return the D (nats) that no honest prompt reaches: 10 x the 99th percentile of F, shape [prompts]."""
    return max(GROSS * float(np.quantile(floor, 0.99)), NUMERIC) if floor.size else float("inf")


def pooled(d: Values, f: Values, rng: np.random.Generator, *, needs: int = POOL_NEEDS) -> Night:
    """Judge prompts together: ``d`` and ``f`` of shape [prompts], paired.

    WORSE when the lower limit of mean D is above `TOLERANCE`, else CHANGED
    when that of mean D / mean F is above `RATIO`; with a floor of zero, when
    any D is beyond `NUMERIC`. Fewer than ``needs`` prompts: UNKNOWN.

    Raises:
        ValueError: when the shapes differ.
    """
    if d.shape != f.shape:
        raise ValueError(f"{d.shape[0]} divergences beside {f.shape[0]} floors")
    count = int(d.shape[0])
    if count < needs:
        return _too_few(d, f, needs)
    mean_d, mean_f = float(d.mean()), float(f.mean())
    interval, worse = beyond_tolerance(d, rng)
    ratio = ratio_interval(d, f, rng)
    if worse:
        state = State.WORSE
    elif mean_f <= NUMERIC:
        state = State.CHANGED if float(d.max()) > NUMERIC else State.OK
    else:
        low = ratio.low if ratio is not None else None
        state = State.CHANGED if low is not None and low > RATIO else State.OK
    return Night(state, count, mean_d, mean_f, interval, ratio, _detectable(mean_d, mean_f, ratio), needs)


def one_bucket(d: Values, f: Values, gross: float, rng: np.random.Generator) -> Night:
    """Judge the prompts of one bucket; ``gross`` is `gross_limit` over the floor of all buckets.

    From `BUCKET_NEEDS` prompts on as in `pooled`. With `FEW_NEED` or more,
    only a fault that every prompt shows grossly is CHANGED, and WORSE when the
    distribution-free lower limit of the mean is beyond tolerance; else the
    state is UNKNOWN and ``detectable`` says which faults are excluded.
    """
    count = int(d.shape[0])
    if count >= BUCKET_NEEDS:
        return pooled(d, f, rng, needs=BUCKET_NEEDS)
    if count < FEW_NEED:
        return _too_few(d, f, FEW_NEED)
    interval, worse = beyond_tolerance(d, rng)
    state = State.UNKNOWN
    if float(d.min()) > gross:
        state = State.WORSE if worse else State.CHANGED
    return Night(
        state=state,
        n=count,
        mean_d=float(d.mean()),
        mean_f=float(f.mean()),
        interval=interval,
        ratio=None,
        detectable=gross,
        needed=BUCKET_NEEDS,
    )


def beyond_tolerance(d: Values, rng: np.random.Generator) -> tuple[Interval | None, bool]:
    """Return the interval of mean D (shape [prompts], nats) and whether its lower limit is beyond tolerance.

    By bootstrap from `BUCKET_NEEDS` prompts on, distribution-free with
    `FEW_NEED` or more; with fewer there is no interval and the answer is no.
    """
    if d.shape[0] < FEW_NEED:
        return None, False
    few = d.shape[0] < BUCKET_NEEDS
    interval = Interval(smallest_value_limit(d), None, 0.99) if few else mean_interval(d, rng)
    return interval, interval is not None and interval.low is not None and interval.low > TOLERANCE


def _too_few(d: Values, f: Values, needs: int) -> Night:
    some = d.size > 0
    return Night(
        state=State.UNKNOWN,
        n=int(d.shape[0]),
        mean_d=float(d.mean()) if some else None,
        mean_f=float(f.mean()) if some else None,
        interval=None,
        ratio=None,
        detectable=None,
        needed=needs,
    )


def _detectable(mean_d: float, mean_f: float, ratio: Interval | None) -> float | None:
    """Scale the threshold by how far the lower limit lies below the estimate on these prompts."""
    if mean_f <= NUMERIC:
        return NUMERIC
    if ratio is None or ratio.low is None or ratio.low <= 0:
        return None
    return RATIO * mean_d / ratio.low
