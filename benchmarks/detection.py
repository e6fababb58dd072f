"""Which faults of a real engine does one night find, with which cause, and what do other methods see?

The reference engine serves SmolLM2 with one fault at a time (`faults.planted`).

- night: every fault and three honest replicas through the ordinary cycle over
  HTTP: verdicts, causes, input tokens sent; the power of the rule of one night
  by tokens, drawn again from the prompts that were measured.
- nights: the same faults without a reference, 14 honest nights and then 30
  with the fault, through ``ringtrue replay``: nights to alarm.
- rivals: LT, MET and token margins on the same weights, in batches that differ
  from request to request: power by tokens, and how often they fire on an
  honest replica.

Bounds: no honest replica is accused; each fault that names a check is found by
that check with its cause. Writes a JSON and a plot.

    python benchmarks/detection.py [night] [nights] [rivals]     # all: about half an hour on two cores
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from faults.nights import AFTER, Watcher
from faults.one_night import BUCKETS, one_night
from faults.planted import BASE, FAULTS, HONEST
from faults.plot import draw
from faults.rival_runs import Rivals

from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference

RESULTS = Path(__file__).parent / "results" / "detection.json"
PLOT = RESULTS.with_suffix(".png")

Rows = list[dict[str, Any]]


def night(engine: Engine) -> Rows:
    """Return what one night says of each replica."""
    overhead = 31  # tokens of the template around a prompt of the shortest bucket
    return [
        {
            "fault": told.fault.name,
            "expected": told.fault.check and f"{told.fault.check} {told.fault.cause}",
            "found": told.drifted,
            "right": told.right,
            "tokens": told.tokens,
            "ratio": told.ratio,
            "power": {n * (BUCKETS[0][0] + overhead): share for n, share in told.power.items()},
            "verdicts": {
                v.check.value: [v.verdict.value, v.cause and v.cause.value, v.reason, v.detectable_effect]
                for v in told.verdicts
            },
        }
        for told in asyncio.run(one_night(engine, FAULTS))
    ]


def nights(engine: Engine) -> Rows:
    """Return how many nights each fault takes without a reference."""
    watcher = Watcher(engine, LocalReference(engine, engine.load(BASE)))
    rows = []
    for seed, fault in enumerate((HONEST, *FAULTS)):
        seen = watcher.watch(fault, seed=seed + 1)
        rows.append(
            {
                "fault": fault.name,
                "nights": seen.nights,
                "false_alarm": seen.false_alarm,
                "tokens_a_night": seen.tokens,
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def rivals(engine: Engine) -> Rows:
    """Return how often each published method fires on each fault."""
    methods = Rivals(engine, LocalReference(engine, engine.load(BASE)))
    rows: Rows = []
    for fault in (HONEST, *FAULTS):
        found = [*methods.logprobs(fault), *methods.samples(fault), *methods.margins(fault)]
        rows += [
            {"method": f.method, "fault": f.fault, "tokens": f.tokens, "power": f.power, "runs": f.runs}
            for f in found
        ]
        print(
            json.dumps({"fault": fault.name} | {f"{f.method} {f.tokens}": f.power for f in found}), flush=True
        )
    return rows


SECTIONS: Mapping[str, Callable[[Engine], Rows]] = {"night": night, "nights": nights, "rivals": rivals}


def table(found: Mapping[str, Rows]) -> str:
    """Return the three sections as one table, a fault a line."""
    by_night = {row["fault"]: row for row in found.get("night", [])}
    by_series = {row["fault"]: row for row in found.get("nights", [])}
    names = list(dict.fromkeys([*by_night, *by_series]))
    lines = [f"{'fault':28}{'D / F':>8}{'tokens':>9}  {'one night':44}{'without a reference':>20}"]
    for name in names:
        row, series = by_night.get(name, {}), by_series.get(name, {})
        ratio = f"{row['ratio']:.2f}" if row.get("ratio") is not None else "-"
        told = ", ".join(f"{check}: {cause}" for check, cause in row.get("found", {}).items()) or "nothing"
        after = series.get("nights")
        waited = "-" if not series else f"{after} nights" if after else f"not in {AFTER}"
        lines.append(f"{name:28}{ratio:>8}{row.get('tokens', 0):>9,}  {told:44}{waited:>20}")
    return "\n".join(lines)


def wrong(found: Mapping[str, Rows]) -> list[str]:
    """Return a sentence for each bound that does not hold."""
    said = [
        f"{row['fault']}: expected {row['expected'] or 'nothing'}, found {row['found'] or 'nothing'}"
        for row in found.get("night", [])
        if row["right"] is False
    ]
    said += [
        f"{row['fault']}: an alarm on honest nights"
        for row in found.get("nights", [])
        if row["false_alarm"] or (row["fault"] == HONEST.name and row["nights"] is not None)
    ]
    return said


def main(chosen: Sequence[str]) -> int:
    """Run the sections, keep what others left in the JSON, print and draw; 1 if a bound does not hold."""
    found: dict[str, Rows] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.parent.mkdir(exist_ok=True)
    with Engine() as engine:
        for name in chosen or SECTIONS:
            started = time.perf_counter()
            found[name] = SECTIONS[name](engine)
            RESULTS.write_text(json.dumps(found, indent=1))
            print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    print(table(found))
    draw(found, PLOT)
    problems = wrong(found)
    for problem in problems:
        print(f"BOUND: {problem}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
