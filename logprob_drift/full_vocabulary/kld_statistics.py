"""The statistics that llama.cpp's ``llama-perplexity --kl-divergence`` prints, with intervals.

Definitions are that tool's (tools/perplexity/perplexity.cpp), so that figures
can be held against published ones: percentiles by linear interpolation, delta
p in per cent of the token that stands there, perplexities over all scored
positions. Two things differ. The tool leaves tokens with a base logprob below
-16 out of its sums and stores the base's logprobs in 16 bits; here the whole
vocabulary counts. And its uncertainties treat positions as independent; here
whole sequences are resampled (docs/methods.md, "Intervals").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from logprob_drift.full_vocabulary.figure import Figure
from logprob_drift.full_vocabulary.kld_percentiles import Percentiles
from logprob_drift.full_vocabulary.kld_sums import KldSums
from logprob_drift.full_vocabulary.positions import PositionDivergences, require_floor
from ringtrue.records import Interval
from ringtrue.stats import RESAMPLES, Values, cluster_resamples, clusters_needed, resampled_interval

KL_PERCENTILES = (99.9, 99, 95, 90, 50, 10, 5, 1, 0.1)
DELTA_P_PERCENTILES = (99.9, 99, 95, 90, 75, 50, 25, 10, 5, 1, 0.1)

_BLOCK_ELEMENTS = 2**20  # weights of sorted positions held at once
_UNITS = {
    "perplexity correlation": "%",
    "perplexity ln_ratio": "nats",
    "same_top": "%",
    "floor mean": "nats",
}


@dataclass(frozen=True, slots=True)
class KldStatistics:
    """Every statistic of one comparison by name, in the order in which people read them.

    ``perplexity`` holds ``candidate``, ``reference``, ``correlation`` (of the
    logprobs, in per cent), ``ln_ratio``, ``ratio`` and ``difference``. ``kl``
    (nats) and ``delta_p`` (per cent) hold ``mean``, ``maximum``, percentiles
    as ``p99.9``, ``median`` and ``minimum``; ``kl`` also ``reverse_mean`` and
    ``js_mean``, ``delta_p`` also ``rms``. ``same_top`` is the share of
    positions, in per cent, where both have the same most likely token.
    ``floor`` is empty, or holds the floor's ``mean`` on the same positions
    (nats) and the ``ratio`` of the mean KL to it. ``level`` is that of every
    interval, two-sided.
    """

    sequences: int
    positions: int
    level: float
    perplexity: Mapping[str, Figure]
    kl: Mapping[str, Figure]
    delta_p: Mapping[str, Figure]
    same_top: Figure
    floor: Mapping[str, Figure] = field(default_factory=dict)


def kld_statistics(
    positions: PositionDivergences,
    rng: np.random.Generator,
    *,
    floor: Values | None = None,
    level: float = 0.98,
    resamples: int = RESAMPLES,
) -> KldStatistics:
    """Return the statistics with bootstrap intervals over sequences.

    ``floor`` is the KL of an honest computation at the same positions
    (nats, [positions]). Whole sequences are drawn and every figure is
    recomputed from what they hold, so that a sequence weighs as many
    positions as it has. Fewer sequences than `clusters_needed`: no intervals.
    A percentile has a limit only on a side where at least that many sequences
    reach; a maximum and a minimum describe the sample and have none.

    Raises:
        ValueError: a value of the floor is not finite, or its shape is another.
    """
    if floor is not None:
        require_floor(positions, floor)
    clusters, count = positions.clusters
    sums = KldSums(positions, floor)
    tables = {
        "kl": Percentiles(positions.kl, clusters, KL_PERCENTILES),
        "delta_p": Percentiles(100 * positions.delta_p, clusters, DELTA_P_PERCENTILES),
    }

    def of(counts: NDArray[np.int32]) -> dict[str, Values]:
        found = sums.of(counts)
        for group, table in tables.items():
            found |= {f"{group} {name}": values for name, values in table.of(counts).items()}
        return found

    needed = clusters_needed(level)
    block = max(1, _BLOCK_ELEMENTS // len(positions))
    blocks = cluster_resamples(count, rng, resamples, block) if count >= needed else ()
    figures = _figures(of(np.ones((1, count), dtype=np.int32)), [of(drawn) for drawn in blocks], count, level)
    for group, table in tables.items():
        for name, (below, above) in table.reach().items():
            figures[f"{group} {name}"] = _open(figures[f"{group} {name}"], below >= needed, above >= needed)
    for group, values in (("kl", positions.kl), ("delta_p", 100 * positions.delta_p)):
        for name, value in (("maximum", values.max()), ("minimum", values.min())):
            figures[f"{group} {name}"] = Figure(float(value), _unit(f"{group} {name}"), count)
    return _arranged(figures, len(positions), count, level)


def _figures(
    values: Mapping[str, Values], drawn: list[dict[str, Values]], count: int, level: float
) -> dict[str, Figure]:
    figures = {}
    for name, value in values.items():
        draws = np.concatenate([part[name] for part in drawn]) if drawn else None
        interval = None if draws is None else resampled_interval(draws, count, level)
        known = float(value[0]) if np.isfinite(value[0]) else None
        figures[name] = Figure(known, _unit(name), count, interval)
    return figures


def _open(figure: Figure, low: bool, high: bool) -> Figure:
    """Return the figure without the limits of its interval that the sample cannot give."""
    found = figure.interval
    if found is not None:
        found = Interval(found.low if low else None, found.high if high else None, found.level)
        found = None if found.low is None and found.high is None else found
    return Figure(figure.value, figure.unit, figure.n, found)


def _unit(name: str) -> str:
    group = name.partition(" ")[0]
    return _UNITS.get(name, {"kl": "nats", "delta_p": "%"}.get(group, ""))


def _arranged(figures: Mapping[str, Figure], positions: int, count: int, level: float) -> KldStatistics:
    kl, delta_p = _in_order(KL_PERCENTILES), _in_order(DELTA_P_PERCENTILES)

    def group(name: str, order: Iterable[str]) -> dict[str, Figure]:
        return {key: figures[f"{name} {key}"] for key in order if f"{name} {key}" in figures}

    perplexity = ("candidate", "reference", "correlation", "ln_ratio", "ratio", "difference")
    return KldStatistics(
        sequences=count,
        positions=positions,
        level=level,
        perplexity=group("perplexity", perplexity),
        kl=group("kl", (*kl, "reverse_mean", "js_mean")),
        delta_p=group("delta_p", (*delta_p, "rms")),
        same_top=figures["same_top"],
        floor=group("floor", ("mean", "ratio")),
    )


def _in_order(percents: Iterable[float]) -> tuple[str, ...]:
    names = ("median" if percent == 50 else f"p{percent:g}" for percent in percents)
    return ("mean", "maximum", *names, "minimum")
