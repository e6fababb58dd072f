"""What is kept of a recording: a few numbers for each endpoint and batch, not its lines."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import median

import numpy as np

from evals.replay.line import Line, Row
from logprob_drift.alarms.census import state_of
from logprob_drift.alarms.series import NightCells, cells_of, merged
from logprob_drift.token_only.loops import loops

TEXTS_KEPT = 10
"""Texts of one prompt and batch that the sample test sees: its cost grows with their square."""


@dataclass(slots=True)
class Numbers:
    """Values of one metric in one batch, from one prompt.

    ``rates`` counts those that are 0 or 1; ``decimals`` is how many decimal
    places the finest of them was written with.
    """

    n: int = 0
    total: float = 0.0
    rates: int = 0
    decimals: int = 0

    @property
    def mean(self) -> float:
        """Their mean; there is at least one."""
        return self.total / self.n

    def add(self, value: float) -> None:
        """Take a value in."""
        self.n += 1
        self.total += value
        self.rates += value in {0.0, 1.0}
        if not value.is_integer():
            exponent = Decimal(repr(value)).as_tuple().exponent
            self.decimals = max(self.decimals, -int(exponent))


@dataclass(slots=True)
class Batch:
    """One batch of one endpoint.

    ``at`` is the median and ``last`` the latest time of its lines, in seconds
    since 1970. ``cells`` holds rows of one length only, and ``left_out``
    counts the rows of other lengths. ``states`` are the hashes of rounded rows,
    as the census takes them, in the order of the recording. ``texts`` are a
    random choice of the answers to each prompt, and ``asked`` says of how many.
    ``log_length`` (log characters) is by prompt, ``values`` by metric and prompt.
    """

    key: str
    at: float
    last: float
    requests: int = 0
    cells: dict[str, NightCells] = field(default_factory=dict)
    left_out: int = 0
    states: dict[str, array[int]] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    empty: Numbers = field(default_factory=Numbers)
    looping: Numbers = field(default_factory=Numbers)
    log_length: dict[str, Numbers] = field(default_factory=dict)
    values: dict[str, dict[str, Numbers]] = field(default_factory=dict)

    @property
    def k(self) -> int | None:
        """The length of the rows in ``cells``, ``None`` where there are none."""
        return next((cells.k for cells in self.cells.values()), None)

    def take(self, lines: Sequence[Line], rng: np.random.Generator) -> None:
        """Reduce some of the batch's lines, at least one, to its numbers."""
        times = [line.at for line in lines]
        if len(lines) > self.requests:
            self.at = median(times)
        self.last = max(self.last, *times)
        self.requests += len(lines)
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        for line in lines:
            match line.content:
                case Row():
                    rows[line.prompt].append(line.content)
                case str():
                    self._take_text(line.prompt, line.content, rng)
                case _:
                    by_prompt = self.values.setdefault(line.metric, {})
                    by_prompt.setdefault(line.prompt, Numbers()).add(line.content)
        if rows:
            self._take_rows(rows)

    def _take_text(self, prompt: str, text: str, rng: np.random.Generator) -> None:
        self.empty.add(float(not text.strip()))
        self.looping.add(float(loops(text)))
        if text.strip():
            self.log_length.setdefault(prompt, Numbers()).add(math.log(len(text)))
        kept = self.texts.setdefault(prompt, [])
        self.asked[prompt] += 1
        if len(kept) < TEXTS_KEPT:
            kept.append(text)
        elif (place := int(rng.integers(self.asked[prompt]))) < TEXTS_KEPT:
            kept[place] = text

    def _take_rows(self, rows: dict[str, list[Row]]) -> None:
        lengths = Counter(len(row.tokens) for held in rows.values() for row in held)
        k = self.k or lengths.most_common(1)[0][0]
        self.left_out += lengths.total() - lengths[k]
        for prompt, held in rows.items():
            same = [row for row in held if len(row.tokens) == k]
            if not same:
                continue
            cells = cells_of([(row.tokens, row.logprobs) for row in same])
            before = self.cells.get(prompt)
            self.cells[prompt] = cells if before is None else merged(before, cells)
            states = (state_of(np.array(row.logprobs), row.tokens) for row in same)
            self.states.setdefault(prompt, array("Q")).extend(int(state, 16) for state in states)


@dataclass(slots=True)
class EndpointSeries:
    """All batches of one endpoint, by key."""

    endpoint: str
    batches: dict[str, Batch] = field(default_factory=dict)

    def in_time(self) -> tuple[Batch, ...]:
        """Return the batches in the order of their times."""
        return tuple(sorted(self.batches.values(), key=lambda batch: (batch.at, batch.key)))
