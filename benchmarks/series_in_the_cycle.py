"""Does the nightly cycle keep its budget of alarms, though it reads only the last 90 nights each time?

Each night the cycle hands the last 90 measured nights to the night detector
and looks at that night's answer alone. Twenty fleet-years of 200 streams in
which nothing changes, five of each kind of `fleet_years`; a stream's first
alarm counts. Then lasting shifts: nights to the alarm with a full window, and
how often one that stands is taken back in the 60 nights after it, though the
shift is still there.

    python benchmarks/series_in_the_cycle.py      # some minutes on one core
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from fleet_years import KINDS, LINEAR, MOST_ALARMS, NIGHTS, RULE, STREAMS, autocorrelated, independent, table
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from logprob_drift.alarms.metric import Metric
from logprob_drift.alarms.night_detector import detect
from logprob_drift.alarms.standing import BACK_NIGHTS, baseline_of, is_back

RESULTS = Path(__file__).parent / "results" / "series_in_the_cycle.json"
READ = 60 + RULE.window  # nights, as collector.series reads them

Values = NDArray[np.float64]


def alarms_by_night(x: Values, metric: Metric) -> NDArray[np.bool_]:
    """Return on which nights the cycle would raise an alarm, [streams, nights]."""
    padded = np.concatenate([np.full((x.shape[0], READ - 1), np.nan), x], axis=1)
    raised = np.zeros(x.shape, dtype=np.bool_)
    for stream, windows in enumerate(sliding_window_view(padded, READ, axis=1)):
        found = detect(np.ascontiguousarray(windows), metric, RULE)
        evidence = np.minimum(np.nan_to_num(found.evidence[:, -1]), np.nan_to_num(found.guarded[:, -1]))
        raised[stream] = evidence >= RULE.threshold
    return raised


def honest_years(years: int = 5) -> list[dict[str, object]]:
    """Return the alarms of each kind of fleet."""
    rows: list[dict[str, object]] = []
    for kind, (draw, metric) in KINDS.items():
        alarms = 0
        for year in range(years):
            x = draw((STREAMS, NIGHTS), np.random.default_rng([year, 90, len(rows)]))
            alarms += int(alarms_by_night(x, metric).any(axis=1).sum())
        rows.append({"kind": kind, "fleet_years": years, "alarms": alarms})
    return rows


def shifts(streams: int = 200, before: int = 60, after: int = 90) -> list[dict[str, object]]:
    """Return how soon a lasting shift is in alarm, and how often the alarm is then taken back."""
    rows: list[dict[str, object]] = []
    for kind, draw in (("normal", independent), ("AR(0.3)", autocorrelated)):
        for shift in (2, 3, 5, 8):
            x = draw((streams, before + after), np.random.default_rng([shift, before, after]))
            x[:, before:] += shift
            raised = alarms_by_night(x[:, : before + 30], LINEAR)[:, before:]
            first = np.where(raised.any(axis=1), raised.argmax(axis=1), -1)
            seen = np.flatnonzero(first >= 0)
            back = [_taken_back(x[stream], before, before + int(first[stream])) for stream in seen]
            nights = float(np.median(np.where(first >= 0, first + 1, np.inf)))
            rows.append(
                {
                    "kind": kind,
                    "shift_sd": shift,
                    "median_nights": nights if np.isfinite(nights) else None,
                    "seen_in_30": round(len(seen) / streams, 3),
                    "taken_back_in_60": round(float(np.mean(back)), 3) if back else None,
                }
            )
    return rows


def _taken_back(x: Values, began: int, raised: int) -> bool:
    baseline = baseline_of(x[:began], LINEAR)
    ends = range(max(raised + 1, began + BACK_NIGHTS), raised + 61)
    return any(is_back(x[began:end], baseline, LINEAR) for end in ends)


def main() -> int:
    """Print the tables and return 1 if the budget does not hold."""
    honest, lasting = honest_years(), shifts()
    table(honest)
    table(lasting)
    alarms = sum(int(str(row["alarms"])) for row in honest)
    found = {"threshold": RULE.threshold, "honest": honest, "shifts": lasting, "alarms": alarms}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{alarms} alarms in 20 fleet-years (at most {MOST_ALARMS})")
    return int(alarms > MOST_ALARMS)


if __name__ == "__main__":
    sys.exit(main())
