"""How many requests does a change take to be seen, and how often is an honest endpoint accused?

Simulated series (benchmarks/rivals/simulated.py) of 60 honest nights and 30
changed ones, at an intra-batch correlation of 0, 0.05 and 0.3, through our
detectors and through published methods as they work: LT's permutation test and
live rule, B3IT's daily rule, MET's test, token margins. Tests without a stated
budget run once a night at a nominal 1 %, against the first night.

Then 200 honest endpoints for a year at each correlation, through the distance
of their logprobs from their own baseline, by one prompt and by the worst of eight.

Bound: our own alarms on honest nights, in all, are no more than the budget of
one alarm in 73,000 stream-nights allows (99th percentile of its Poisson).

    python benchmarks/detection_on_series.py [STREAMS]      # 40 by default: about two minutes on one core
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rivals import b3it, lt, met, simulated, token_margins
from rivals.simulated import HONEST, NIGHTS
from scipy.stats import poisson

from logprob_drift.alarms.metric import Metric, Scale
from logprob_drift.alarms.night_detector import Rule, detect
from logprob_drift.alarms.series import RESOLUTION, cells_of, night_distances, worst_distances
from logprob_drift.token_only.border_inputs import distance, violation_alarms, violations
from logprob_drift.token_only.greedy_margins import prompt_margins
from logprob_drift.token_only.samples import night_series
from ringtrue.e_values import alarm_threshold

RESULTS = Path(__file__).parent / "results" / "detection_on_series.json"
CORRELATIONS = (0.0, 0.05, 0.3)
BASELINE = 14
FIRST = 30  # the night from which on honest nights are counted: every rule has its history by then
FLEET, YEAR = 200, 365
RULE = Rule(alarm_threshold(FLEET), baseline=BASELINE)
NATS = Metric(RESOLUTION, Scale.LOG, "nats")
NOMINAL = 0.01
DRAWS = 199

Flags = NDArray[np.bool_]
Series = NDArray[np.float64]
Found = dict[str, tuple[int, Flags]]  # method: requests a night, and [nights] on which it fires


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one kind of series.

    ``fires`` is the share of honest nights on which it fires, ``accused`` the
    share of honest streams that it accuses within 30 nights, ``seen`` the
    share of changes seen within 30 nights, and ``requests`` the median number
    of requests from the change on, ``None`` where fewer than half are seen.
    """

    series: str
    method: str
    correlation: float
    change: float
    fires: float
    accused: float
    seen: float
    requests: int | None
    alarms: int  # on honest nights, from the end of the baseline on


def by_night(series: list[Series], metric: Metric) -> list[Flags]:
    """Return where the night detector's first alarm of each stream stands."""
    found = detect(np.stack(series), metric, RULE)
    flags = np.zeros(found.alarm.shape, dtype=np.bool_)
    some = found.first >= 0
    flags[some, found.first[some]] = True
    return list(flags)


def distances(rows: Series) -> Series:
    """Return the distance of each night's rows, [nights, requests, tokens], from the first nights."""
    listed = range(rows.shape[2])
    nights = [cells_of([(listed, row.tolist()) for row in night]) for night in rows]
    return night_distances({"x": nights}, BASELINE)


def honest_year(correlation: float, streams: int = FLEET, nights: int = YEAR) -> int:
    """Return how many of so many honest endpoints alarm within a year by the distance of their logprobs."""
    rng = np.random.default_rng([365, int(100 * correlation)])
    numbers = [
        distances(simulated.logprob_rows(rng, correlation, 0.0, nights=nights)) for _ in range(streams)
    ]
    return int(np.sum(by_night(numbers, NATS)))


def honest_prompts(correlation: float, streams: int = FLEET, prompts: int = 8, nights: int = YEAR) -> int:
    """Return how many of so many honest endpoints alarm within a year by the worst of their prompts."""
    rng = np.random.default_rng([366, int(100 * correlation)])
    numbers = []
    for _ in range(streams):
        held = {}
        for prompt in range(prompts):
            rows = simulated.logprob_rows(rng, correlation, 0.0, nights=nights, requests=2)
            listed = range(rows.shape[2])
            held[str(prompt)] = [cells_of([(listed, row.tolist()) for row in night]) for night in rows]
        numbers.append(worst_distances(held, BASELINE))
    return int(np.sum(by_night(numbers, NATS)))


def of_logprobs(rng: np.random.Generator, correlation: float, change: float, streams: int) -> list[Found]:
    """Rows of one prompt: our distance, LT's test against the first night, LT's live rule."""
    rows = [simulated.logprob_rows(rng, correlation, change) for _ in range(streams)]
    ours = by_night([distances(one) for one in rows], NATS)
    found = []
    for one, alarms in zip(rows, ours, strict=True):
        p = np.array([lt.p_value(one[0], night, rng, DRAWS) for night in one])
        statistic = np.array([lt.statistic(one[0], night) for night in one[1:]])
        live = np.append([False], lt.live_alarms(statistic))
        found.append({"ringtrue": (10, alarms), "LT test": (10, p <= NOMINAL), "LT live": (10, live)})
    return found


def of_border_inputs(
    rng: np.random.Generator, correlation: float, change: float, streams: int
) -> list[Found]:
    """First tokens near a tie: our violations (10 requests a night) and distance, B3IT's daily rule."""
    found, numbers = [], []
    for _ in range(streams):
        counts, shares = simulated.border_counts(rng, correlation, change)
        numbers.append(distance(counts, shares))
        one_each, _ = simulated.border_counts(rng, correlation, change, inputs=10, answers=1)
        outside = violations(one_each, shares[:10] > 0)[None, :]
        ten = np.full(outside.shape, 10)
        alarms = violation_alarms(
            outside, ten, rate=1e-3, correlation=max(correlation, 0.05), threshold=RULE.threshold
        ).alarms[0]
        reference = np.stack([rng.multinomial(b3it.REFERENCE, share) for share in shares])
        daily = np.array([b3it.mean_total_variation(night, reference) for night in counts])
        found.append({"ringtrue violations": (10, alarms), "B3IT": (200, b3it.alarms(daily))})
    for one, alarms in zip(found, by_night(numbers, Metric(0.005, unit="distance")), strict=True):
        one["ringtrue distance"] = (200, alarms)
    return found


def of_answers(rng: np.random.Generator, correlation: float, change: float, streams: int) -> list[Found]:
    """Sampled answers: our MMD^2 by night, MET's test against the first night. 40 requests a night."""
    nights = [simulated.answers(rng, correlation, change) for _ in range(streams)]
    ours = by_night([night_series(one, BASELINE) for one in nights], Metric(1e-4, unit="MMD^2"))
    found = []
    for one, alarms in zip(nights, ours, strict=True):
        prompts, samples = one.shape[1:3]
        labels = np.repeat(np.arange(prompts), samples)
        flat = one.reshape(NIGHTS, prompts * samples, -1).astype(np.int32)
        p = np.array([met.p_value(flat[0], night, (labels, labels), rng, DRAWS) for night in flat])
        found.append({"ringtrue": (40, alarms), "MET": (40, p <= NOMINAL)})
    return found


def of_margins(rng: np.random.Generator, correlation: float, change: float, streams: int) -> list[Found]:
    """Greedy tokens: our mean by prompt and night, and token margins against the first night. 64 requests."""
    nights = [simulated.greedy_margins(rng, correlation, change) for _ in range(streams)]
    prompts, tokens = nights[0].shape[1:]
    place = np.repeat(np.arange(prompts), tokens)
    numbers = [
        np.array([prompt_margins(night.ravel(), place, prompts).mean() for night in one]) for one in nights
    ]
    ours = by_night(numbers, Metric(1e-4, Scale.LOG, "nats"))
    found = []
    for one, alarms in zip(nights, ours, strict=True):
        p = np.array([token_margins.p_value(one[0].ravel(), night.ravel()) for night in one])
        found.append({"ringtrue": (64, alarms), "token margins": (64, p <= NOMINAL)})
    return found


Simulation = Callable[[np.random.Generator, float, float, int], list[Found]]
SERIES: dict[str, tuple[Simulation, tuple[float, ...]]] = {
    "logprobs": (of_logprobs, (0.5, 1.0, 3.0, 40.0)),  # shift in SDs of a request
    "border inputs": (of_border_inputs, (0.1, 0.5, 0.9)),  # share of answers outside the tie
    "answers": (of_answers, (0.2, 0.5, 1.0)),  # share of another model
    "greedy margins": (of_margins, (0.03, 0.05, 0.2)),  # share of tokens that depart, 0.02 honestly
}


def rows_of(name: str, streams: int, seed: int) -> Iterator[Row]:
    """Yield a row for each method, correlation and change."""
    simulate, changes = SERIES[name]
    for at, (correlation, change) in enumerate((c, d) for c in CORRELATIONS for d in changes):
        found = simulate(np.random.default_rng([seed, at]), correlation, change, streams)
        for method in found[0]:
            flags = np.stack([one[method][1] for one in found])
            yield _row(name, method, correlation, change, found[0][method][0], flags)


def _row(name: str, method: str, correlation: float, change: float, requests: int, flags: Flags) -> Row:
    honest, changed = flags[:, FIRST:HONEST], flags[:, HONEST:]
    nights = np.where(changed.any(axis=1), changed.argmax(axis=1) + 1.0, np.inf)
    median = float(np.median(nights))
    return Row(
        series=name,
        method=method,
        correlation=correlation,
        change=change,
        fires=float(honest.mean()),
        accused=float(honest.any(axis=1).mean()),
        seen=float(changed.any(axis=1).mean()),
        alarms=int(flags[:, BASELINE:HONEST].sum()),
        requests=int(np.ceil(median) * requests) if np.isfinite(median) else None,
    )


def main() -> int:
    """Print the table, write it as JSON, and return 1 if our budget does not hold."""
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rows = [row for at, name in enumerate(SERIES) for row in rows_of(name, streams, at)]
    print(
        f"{'series':16}{'method':22}{'corr':>5}{'change':>8}{'fires':>8}{'accused':>9}{'seen':>7}{'requests':>10}"
    )
    for row in rows:
        requests = "-" if row.requests is None else row.requests
        print(
            f"{row.series:16}{row.method:22}{row.correlation:5.2f}{row.change:8.2f}"
            f"{row.fires:8.3f}{row.accused:9.2f}{row.seen:7.2f}{requests:>10}"
        )
    years = {str(correlation): honest_year(correlation) for correlation in CORRELATIONS}
    print(f"honest endpoints that alarm in a year, of {FLEET} at each correlation: {years}")
    worst = {str(correlation): honest_prompts(correlation) for correlation in CORRELATIONS}
    print(f"the same by the worst of eight prompts: {worst}")
    own = [row for row in rows if row.method.startswith("ringtrue")]
    total = len(own) * streams * (HONEST - BASELINE) + 2 * len(years) * FLEET * (YEAR - BASELINE)
    alarms = sum(row.alarms for row in own) + sum(years.values()) + sum(worst.values())
    budget = total / RULE.threshold
    allowed = int(poisson.ppf(0.99, budget))
    print(f"our alarms on {total:,} honest stream-nights: {alarms}; budget {budget:.2f}")
    RESULTS.parent.mkdir(exist_ok=True)
    summary = {
        "streams": streams,
        "alarms": alarms,
        "budget": budget,
        "allowed": allowed,
        "honest_years": years,
        "honest_years_by_worst_prompt": worst,
    }
    RESULTS.write_text(json.dumps(summary | {"rows": [asdict(row) for row in rows]}, indent=1))
    return int(alarms > allowed)


if __name__ == "__main__":
    sys.exit(main())
