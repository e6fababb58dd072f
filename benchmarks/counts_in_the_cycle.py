"""Do shares, e-values, border violations and bad sessions keep the budget as the nightly cycle reads them?

Each night the cycle reads the last 90 measured nights and looks at that
night's answer alone. First honest fleets of 200 streams, A = 73,000: shares
among 60 answers (rate_change), log e-values of a night (normal, so that the
e-value's expectation is 1), violations among 20 border prompts whose null
comes from the stream's own earlier nights, and bad sessions among 125. Then
lasting changes after 60 honest nights: nights to the alarm, and how often an
alarm that stands is taken back in the 30 nights after it though the change is
still there, and how soon it is taken back once the stream is as before. Last,
the CPU time of judging 200 endpoints for one night, all streams, with the
store.

    python benchmarks/counts_in_the_cycle.py      # some minutes on one core
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from fleet_years import NIGHTS, RULE, STREAMS, THRESHOLD, table
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.special import betaln

from collector.series import BASELINE_KEPT, Watch, judge_series
from collector.streams.detectors import DETECTORS, raised
from collector.streams.stream import Stream
from collector.streams.watched import WATCHED, Kind, Watched
from logprob_drift.alarms.mixture import FALSE_POSITIVE, session_e_values
from logprob_drift.alarms.restarts import sum_over_starts
from ringtrue.alarm import Alarm
from ringtrue.rate_change import rate_changes
from ringtrue.records import Cause, Check, Finding, Observation, Party, Severity
from ringtrue.store import open_store

RESULTS = Path(__file__).parent / "results" / "counts_in_the_cycle.json"
READ = BASELINE_KEPT + RULE.window
FIRST = datetime(2026, 1, 1, 2, tzinfo=UTC)
ANSWERS, PROMPTS, SESSIONS = 60, 20, 125
BEFORE, AFTER = 60, 60
YEARS = 5

Values = NDArray[np.float64]
Rng = np.random.Generator
Draw = Callable[[Rng, tuple[int, int]], Values]


def counts(trials: int, rate: float, correlation: float) -> Draw:
    """Return what draws shares of events, beta-binomial within a night."""

    def draw(rng: Rng, shape: tuple[int, int]) -> Values:
        size = (1 - correlation) / correlation if correlation else 0.0
        chance = rng.beta(rate * size, (1 - rate) * size, shape) if correlation else rate
        return rng.binomial(trials, chance, shape) / trials

    return draw


def logs(shift: float, tilt: float = 1.0) -> Draw:
    """Return what draws log e-values: N(tilt, 1) against N(0, 1), seen at a night's x of mean ``shift``."""
    return lambda rng, shape: tilt * (shift + rng.standard_normal(shape)) - tilt**2 / 2


@dataclass(frozen=True, slots=True)
class Case:
    """A lasting change of one number."""

    metric: str
    n: int
    said: str
    honest: Draw
    changed: Draw


CASES = (
    Case("capped_answers", ANSWERS, "1 -> 5 %", counts(60, 0.01, 0.0), counts(60, 0.05, 0.0)),
    Case("capped_answers", ANSWERS, "1 -> 20 %, corr. 0.02", counts(60, 0.01, 0.02), counts(60, 0.2, 0.02)),
    Case("looping_answers", ANSWERS, "5 -> 15 %, corr. 0.02", counts(60, 0.05, 0.02), counts(60, 0.15, 0.02)),
    Case("sampling_log_e", 1200, "1 SD a night", logs(0), logs(1)),
    Case("sampling_log_e", 1200, "2 SD a night", logs(0), logs(2)),
    Case("border_violations", PROMPTS, "to 30 %, corr. 0.05", counts(20, 0.001, 0.05), counts(20, 0.3, 0.05)),
    Case("border_violations", PROMPTS, "to 90 %, corr. 0.05", counts(20, 0.001, 0.05), counts(20, 0.9, 0.05)),
    Case("bad_sessions", SESSIONS, "0.8 %", counts(125, FALSE_POSITIVE, 0), counts(125, 0.008, 0)),
    Case("bad_sessions", SESSIONS, "2 %", counts(125, FALSE_POSITIVE, 0), counts(125, 0.02, 0)),
)


def row_of(metric: str) -> Watched:
    """Return the row of the table that watches ``metric``."""
    (row,) = (row for row in WATCHED if row.name == metric)
    return row


def stream_of(row: Watched, values: Values, n: int) -> Stream:
    """Return the stream that the cycle would read from these nights, tonight last."""
    read = values[-READ:]
    starts = tuple(FIRST + timedelta(days=night) for night in range(values.size - read.size, values.size))
    return Stream(row.name, row, None, starts, read, read, np.full(read.size, float(n)), 0, restarted=False)


def alarm_of(row: Watched, values: Values, n: int) -> Alarm | None:
    """Return the alarm that the last of these nights raises."""
    (told,) = DETECTORS[row.kind].tell([stream_of(row, values, n)], RULE)
    return raised(told, "r", "acme", FIRST + timedelta(days=values.size - 1))


def honest_shares(rate: float, correlation: float, rng: Rng, streams: int = STREAMS) -> int:
    """Return how many streams of shares alarm in a year.

    A design effect only lowers evidence that is large, so that a night whose
    evidence without one stays far below the threshold need not be judged.
    """
    shares = counts(ANSWERS, rate, correlation)(rng, (streams, NIGHTS))
    events = np.concatenate([np.zeros((streams, READ - 1)), np.round(shares * ANSWERS)], axis=1)
    trials = np.concatenate([np.zeros((streams, READ - 1)), np.full(shares.shape, float(ANSWERS))], axis=1)
    possible = _independent_evidence(events, trials) >= RULE.threshold / 10
    alarms = 0
    for stream in np.flatnonzero(possible.any(axis=1)):
        read = [sliding_window_view(one[stream], READ)[possible[stream]] for one in (events, trials)]
        found = rate_changes(*read, RULE.threshold, baseline=RULE.baseline, window=RULE.window)
        least = np.minimum(np.nan_to_num(found.evidence[:, -1]), np.nan_to_num(found.guarded[:, -1]))
        alarms += bool((least >= RULE.threshold).any())
    return alarms


def _independent_evidence(events: Values, trials: Values) -> Values:
    """Return each night's evidence if the answers of a night were independent, [streams, nights]."""
    k, n = (np.cumsum(np.pad(one, ((0, 0), (1, 0))), axis=1) for one in (events, trials))
    ends = np.arange(READ, k.shape[1])
    total = np.zeros((events.shape[0], ends.size))
    for lag in range(1, RULE.window + 1):
        cut, first = ends - lag, ends - READ
        k1, n1 = k[:, cut] - k[:, first], n[:, cut] - n[:, first]
        k2, n2 = k[:, ends] - k[:, cut], n[:, ends] - n[:, cut]
        log = (
            betaln(k1 + 0.5, n1 - k1 + 0.5)
            + betaln(k2 + 0.5, n2 - k2 + 0.5)
            - betaln(k1 + k2 + 0.5, n1 + n2 - k1 - k2 + 0.5)
            - betaln(0.5, 0.5)
        )
        total += np.exp(np.minimum(log, 600.0))
    return total


def honest_violations(rate: float, correlation: float, rng: Rng, streams: int = STREAMS) -> int:
    """Return how many streams of border violations alarm in a year.

    A night with fewer than two violating prompts has an e-value below 1 and
    raises no alarm that was not there the night before.
    """
    row, shares = row_of("border_violations"), counts(PROMPTS, rate, correlation)(rng, (streams, NIGHTS))
    return sum(
        any(
            alarm_of(row, mine[: night + 1], PROMPTS) is not None
            for night in np.flatnonzero(np.round(mine * PROMPTS) >= 2)
        )
        for mine in shares
    )


def honest_evidence(kind: Kind, rng: Rng, streams: int = STREAMS) -> int:
    """Return how many streams against a stated null alarm in a year; the window holds all its starts."""
    shape = (streams, NIGHTS)
    if kind is Kind.LOG_E:
        m = sum_over_starts(np.exp(logs(0)(rng, shape))).m
    else:
        bad = rng.binomial(SESSIONS, FALSE_POSITIVE, shape)
        e_values = session_e_values(bad, np.full(shape, SESSIONS))
        m = np.mean([sum_over_starts(one).m for one in e_values], axis=0)
    return int((m >= RULE.threshold).any(axis=1).sum())


def honest_years(years: int = YEARS, streams: int = STREAMS) -> list[dict[str, object]]:
    """Return the alarms of each kind of fleet."""
    kinds: dict[str, Callable[[Rng], int]] = {
        f"share {rate:.0%}, corr. {rho:g}": lambda rng, rate=rate, rho=rho: honest_shares(
            rate, rho, rng, streams
        )
        for rate, rho in ((0.01, 0.0), (0.01, 0.02), (0.05, 0.02), (0.05, 0.05))
    }
    kinds |= {
        f"violations {rate:.1%}, corr. {rho:g}": lambda rng, rate=rate, rho=rho: honest_violations(
            rate, rho, rng, streams
        )
        for rate, rho in ((0.001, 0.0), (0.001, 0.05), (0.01, 0.05), (0.01, 0.1))
    }
    kinds["log e-values"] = lambda rng: honest_evidence(Kind.LOG_E, rng, streams)
    kinds["bad sessions"] = lambda rng: honest_evidence(Kind.SESSIONS, rng, streams)
    return [
        {
            "kind": kind,
            "fleet_years": years,
            "alarms": sum(run(np.random.default_rng([year, at, 91])) for year in range(years)),
        }
        for at, (kind, run) in enumerate(kinds.items())
    ]


def changes(streams: int = 60) -> list[dict[str, object]]:
    """Return how soon a lasting change is in alarm, and when the alarm is taken back."""
    rows: list[dict[str, object]] = []
    for at, case in enumerate(CASES):
        rng, row = np.random.default_rng([at, BEFORE, AFTER]), row_of(case.metric)
        before = case.honest(rng, (streams, BEFORE))
        after = case.changed(rng, (streams, AFTER))
        back = case.honest(rng, (streams, 30))
        nights, early, healed = [], [], []
        for mine, later, again in zip(before, after, back, strict=True):
            found = _first(row, mine, later, case.n)
            nights.append(np.inf if found is None else found[0])
            if found is not None:
                raised_on, alarm = found
                early.append(_back(row, alarm, np.concatenate([mine, later]), raised_on, case.n) is not None)
                ended = np.concatenate([mine, later[: raised_on + 5], again])
                healed.append(_back(row, alarm, ended, raised_on + 5, case.n) or np.inf)
        rows.append(
            {
                "number": case.metric,
                "change": case.said,
                "median_nights": _median(nights),
                "seen_in_30": round(float(np.mean(np.isfinite(nights))), 3),
                "taken_back_in_30": round(float(np.mean(early)), 3) if early else None,
                "median_nights_to_heal": _median(healed) if healed else None,
            }
        )
    return rows


def _first(row: Watched, before: Values, after: Values, n: int) -> tuple[int, Alarm] | None:
    """Return on which night of 30, counted from 1, the change is in alarm."""
    for night in range(1, 31):
        alarm = alarm_of(row, np.concatenate([before, after[:night]]), n)
        if alarm is not None:
            return night, alarm
    return None


def _back(row: Watched, alarm: Alarm, values: Values, raised_on: int, n: int) -> int | None:
    """Return how many nights after ``raised_on`` nights of the change the alarm is taken back, of 30."""
    for night in range(1, 31):
        nights = values[: BEFORE + raised_on + night]
        if DETECTORS[row.kind].is_back(stream_of(row, nights, n), alarm) is not None:
            return night
    return None


def _median(nights: list[float]) -> float | None:
    median = float(np.median(nights))
    return median if np.isfinite(median) else None


def cost(endpoints: int = 5, fleet: int = 200) -> dict[str, float]:
    """Return CPU seconds in which one night of ``fleet`` endpoints is judged, from a store of 90 nights."""
    rng = np.random.default_rng(4)
    names = [f"e{at}" for at in range(endpoints)]
    quiet = {Check.LOGPROBS: 0.001, Check.TOKENS: 0.0, Check.SAMPLING: 0.0, Check.OUTPUT: None}
    found = {
        name: [
            Finding(name, check, "c", Severity.INFO, Party.UNKNOWN, Cause.UNKNOWN, "", value=value)
            for check, value in quiet.items()
        ]
        for name in names
    }
    now = [FIRST]
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(f"sqlite:///{folder}/ringtrue.db", clock=lambda: now[0])) as store,
    ):
        for night in range(READ):
            now[0] = FIRST + timedelta(days=night)
            run = f"r{night:03}"
            store.start_run(run, "b")
            store.add_observations([one for name in names for one in _numbers(name, run, now[0], rng)])
            for name in names if night < READ - 1 else ():
                store.conclude(run, found[name], [])
        watch = Watch("b", RULE)
        started = time.process_time()
        for name in names:
            judged = judge_series(store, name, found[name], watch, run=run, at=now[0])
            if judged.alarms:
                raise AssertionError(judged.alarms)
        seconds = time.process_time() - started
    return {"endpoints": fleet, "streams_each": 16, "cpu_seconds": round(seconds / endpoints * fleet, 2)}


def _numbers(name: str, run: str, at: datetime, rng: Rng) -> list[Observation]:
    def one(metric: str, value: float, n: int, length: int | None = None) -> Observation:
        return Observation(name, "p", metric, float(value), "", n, at, run, context_length=length)

    curve = [
        one(metric, value, 64, length)
        for length in (32, 128, 512, 2048)
        for metric, value in (("kl_mean", 0.001 * np.exp(0.1 * rng.standard_normal())), ("k_min", 20))
    ]
    drawn = {
        "greedy_margin": 0.002 * np.exp(0.1 * rng.standard_normal()),
        "border_distance": 0.2 + 0.01 * rng.standard_normal(),
        "sampling_log_e": rng.standard_normal() - 0.5,
        "border_violations": 0.0,
        "bad_sessions": 0.0,
        "answer_log_length": 4 + 0.03 * rng.standard_normal(),
        "reasoning_share": 0.4 + 0.01 * rng.standard_normal(),
        "capped_answers": rng.binomial(60, 0.02) / 60,
        "empty_answers": 0.0,
        "looping_answers": rng.binomial(60, 0.05) / 60,
        "flooded_answers": 0.0,
        "foreign_answers": 0.0,
    }
    return [*curve, *(one(metric, value, 60) for metric, value in drawn.items())]


def main() -> int:
    """Print the tables and return 1 if the budget does not hold."""
    honest, lasting, seconds = honest_years(), changes(), cost()
    table(honest)
    table(lasting)
    found = {"threshold": THRESHOLD, "honest": honest, "changes": lasting, "cost": seconds}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(f"one night of a fleet: {seconds}")
    return int(any(int(str(row["alarms"])) > YEARS for row in honest))


if __name__ == "__main__":
    sys.exit(main())
