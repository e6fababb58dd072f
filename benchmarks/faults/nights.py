"""The same faults without a reference: 14 honest nights, then up to 30 with the fault, replayed.

Each night asks the same prompts, in batches of its own; what was asked is
written as a recorded series and goes through ``ringtrue replay``'s own code.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from faults.planted import CORRUPT_FROM, HONEST, Fault
from faults.rows import Served, Values
from rich.console import Console

from evals.replay.running import ReplayPlan, run_replay
from probes.context_curve import build_prompts
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from ringtrue.progress import Lines

BASELINE, AFTER = 14, 30  # nights
DRAWN_LENGTH = 10  # tokens of an answer, for faults of what is drawn
FLEET = 200  # streams that share one false alarm a year
REPLAYED = frozenset(BASELINE + after for after in (3, 6, 10, 20, AFTER))
"""Numbers of nights after which the series so far is replayed."""

K = 20
_FIRST = datetime(2026, 1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a night asks: ``prompts`` of ``length`` tokens, each ``times``."""

    prompts: int
    length: int
    times: int


LISTED = Asked(8, 32, 2)
DRAWN = Asked(10, 32, 4)


@dataclass(frozen=True, slots=True)
class Watched:
    """How many nights the fault took to be seen, ``None`` where 30 were not enough.

    ``false_alarm``: an alarm stood before it began. ``tokens`` are the input
    tokens of a night.
    """

    fault: Fault
    nights: int | None
    false_alarm: bool
    tokens: int


class Watcher:
    """Records and replays one series a fault; the honest nights before it are the same for all of a kind."""

    def __init__(self, engine: Engine, reference: LocalReference, listed: Asked = LISTED) -> None:
        self._engine = engine
        self._reference = reference
        self._listed = listed
        self._before: dict[tuple[object, ...], list[str]] = {}

    def watch(self, fault: Fault, *, seed: int) -> Watched:
        """Return what the replay of one series says; it is recorded until an alarm stands."""
        a_night = DRAWN if fault.draws else self._listed
        prompts = self._prompts(fault, a_night)
        recorder = _Recorder(self._engine, self._reference, prompts, a_night.times, drawn=fault.draws)
        kind = (fault.draws, len(prompts))
        if kind not in self._before:
            honest = Served.load(self._engine, HONEST)
            self._before[kind] = [line for n in range(BASELINE) for line in recorder.night(honest, n, 0)]
        served = Served.load(self._engine, fault)
        lines = list(self._before[kind])
        asked = sum(map(len, prompts)) * a_night.times
        for night in range(BASELINE, BASELINE + AFTER):
            lines += recorder.night(served, night, seed)
            if night + 1 in REPLAYED and (first := _first_alarm(lines)) is not None:
                early = first < BASELINE
                return Watched(fault, None if early else first - BASELINE + 1, early, asked)
        return Watched(fault, None, false_alarm=False, tokens=asked)

    def _prompts(self, fault: Fault, a_night: Asked) -> list[tuple[int, ...]]:
        buckets = [(a_night.length, a_night.prompts)]
        if fault.faults.corrupt_beyond is not None:
            buckets.append((CORRUPT_FROM + 128, 1))
        prompts = build_prompts(self._reference, buckets, seed=9)
        return [self._reference.render(prompt.messages) for prompt in prompts]


def _first_alarm(lines: Sequence[str]) -> int | None:
    """Return the night of the first alarm of a replay."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "series.jsonl"
        path.write_text("".join(lines), encoding="utf-8")
        replay = run_replay(ReplayPlan((path,), streams=FLEET), Lines(Console(stderr=True, quiet=True)))
    return min((int(alarm.batch) for alarm in replay.alarms), default=None)


@dataclass(frozen=True, slots=True)
class _Recorder:
    """Asks the same prompts every night and writes what comes back as lines of a recorded series."""

    engine: Engine
    reference: LocalReference
    prompts: Sequence[tuple[int, ...]]
    times: int
    drawn: bool

    def night(self, served: Served, night: int, seed: int) -> Iterator[str]:
        """Yield a night's lines: top-k rows, or answers drawn at temperature 1."""
        rng = np.random.default_rng([seed, night])
        asked = [(i, ids) for i, ids in enumerate(self.prompts) for _ in range(self.times)]
        contents = (self._drawn if self.drawn else self._listed)(served, [ids for _, ids in asked], rng)
        at = (_FIRST + timedelta(days=night)).isoformat()
        for (prompt, _), content in zip(asked, contents, strict=True):
            line = {"endpoint": "replica", "t": at, "batch": str(night), "prompt": str(prompt)}
            yield json.dumps(line | content) + "\n"

    def _listed(
        self, served: Served, asked: Sequence[Sequence[int]], rng: np.random.Generator
    ) -> list[dict[str, object]]:
        return [{"top_logprobs": _top(row)} for row in served.rows(self.engine, asked, rng)]

    def _drawn(
        self, served: Served, asked: Sequence[Sequence[int]], rng: np.random.Generator
    ) -> list[dict[str, object]]:
        tokens = served.tokens(self.engine, asked, DRAWN_LENGTH, rng, temperature=1.0)
        return [{"text": self.reference.decode(answer)} for answer in tokens.tolist()]


def _top(row: Values) -> list[list[object]]:
    best = np.argsort(-row, kind="stable")[:K]
    return [[f"token_id:{token}", float(row[token])] for token in best]
