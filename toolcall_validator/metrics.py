"""Rates over judged exchanges: numerator, denominator, interval; nothing without a denominator.

Answers to one prompt resemble each other, so intervals are as wide as if each
prompt had been asked once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ringtrue.records import Interval
from ringtrue.stats import wilson
from toolcall_validator.fault import CODES

STEPS = 15  # of an agent, each of which has to succeed
LEVEL = 0.95

SCHEMA_CODES = tuple(code for code in CODES if code.startswith("schema."))
RATES = (
    "effective_rate",
    "request_validity",
    "call_validity",
    "id_integrity",
    "finish_consistency",
    "structured_validity",
    "leak_rate",
    "empty_rate",
    "loop_rate",
    "script_rate",
    "hidden_length_rate",
    "missing_usage_rate",
    "first_attempt_availability",
)
"""The rates in the order in which they are told; those of `SCHEMA_CODES` follow, by delivered call."""


@dataclass(frozen=True, slots=True)
class Rate:
    """``events`` in ``trials``, over so many different ``prompts``."""

    events: int
    trials: int
    prompts: int

    @property
    def value(self) -> float:
        """The share."""
        return self.events / self.trials

    @property
    def interval(self) -> Interval:
        """The 95 % Wilson interval, as wide as if each prompt had been asked once."""
        found = wilson(round(self.value * self.prompts), self.prompts, LEVEL)
        return found or Interval(0.0, 1.0, LEVEL)

    def as_dict(self) -> dict[str, Any]:
        """Return value, counts and interval for JSON."""
        return {
            "value": self.value,
            "events": self.events,
            "trials": self.trials,
            "prompts": self.prompts,
            "interval": bounds_of(self.interval),
        }


@dataclass(frozen=True, slots=True)
class Parity:
    """The share of streamed answers with a fail fault minus that of plain ones.

    Over the ``pairs``, of which ``broken`` differ in class.
    """

    value: float
    interval: Interval
    pairs: int
    broken: int


@dataclass(frozen=True, slots=True)
class Trigger:
    """How well delivered calls agree with the reference's: F1 of "this prompt is answered by a call".

    ``both`` answers called where the reference did, ``one`` where only one of
    the two did, over so many ``prompts``; prompts that neither called on say
    nothing, and nor do those that force a call.
    """

    both: int
    one: int
    prompts: int

    @property
    def f1(self) -> float:
        """2 TP / (2 TP + FP + FN)."""
        return 2 * self.both / (2 * self.both + self.one)

    @property
    def interval(self) -> Interval:
        """The 95 % interval, as wide as if each prompt had been asked once.

        F1 is 2 s / (1 + s) of the share s of agreements among answers on which
        either called: its bounds are those of the Wilson interval of s.
        """
        share = Rate(self.both, self.both + self.one, self.prompts).interval
        low, high = (2 * bound / (1 + bound) for bound in (share.low or 0.0, _high(share)))
        return Interval(low, high, LEVEL)

    def as_dict(self) -> dict[str, Any]:
        """Return value, counts and interval for JSON."""
        return {
            "value": self.f1,
            "events": 2 * self.both,
            "trials": 2 * self.both + self.one,
            "prompts": self.prompts,
            "interval": bounds_of(self.interval),
        }


@dataclass(frozen=True, slots=True)
class Metrics:
    """All metrics of one endpoint; a rate without a denominator is missing from ``rates``.

    ``rerun`` is the trigger F1 of the reference's own later answers against
    its first: an endpoint can't be expected to agree better.
    """

    rates: Mapping[str, Rate]
    parity: Parity | None
    trigger: Trigger | None
    rerun: Trigger | None
    exchanges: int
    scored: int

    def as_dict(self) -> dict[str, Any]:
        """Return every metric by name for JSON; ``None`` where nothing could be counted."""
        names = [*RATES, *(code for code in SCHEMA_CODES if code in self.rates)]
        rates = {name: self.rates[name].as_dict() if name in self.rates else None for name in names}
        parity, trigger = self.parity, self.trigger
        steps = success_of_steps(self.rates.get("effective_rate"))
        return {
            "exchanges": self.exchanges,
            "scored": self.scored,
            "level": LEVEL,
            **rates,
            "stream_parity": None
            if parity is None
            else {
                "value": parity.value,
                "interval": bounds_of(parity.interval),
                "pairs": parity.pairs,
                "broken": parity.broken,
            },
            "trigger_f1": trigger and trigger.as_dict(),
            "reference_rerun_f1": self.rerun and self.rerun.as_dict(),
            "success_of_steps": steps
            and {"value": steps[0], "steps": STEPS, "interval": bounds_of(Interval(*steps[1], LEVEL))},
        }


def success_of_steps(rate: Rate | None, steps: int = STEPS) -> tuple[float, tuple[float, float]] | None:
    """Return how often ``steps`` in a row succeed, p^n, and its 95 % interval; ``None`` for no rate.

    As if steps failed independently; where failures cluster in some requests, more chains succeed.
    """
    if rate is None:
        return None
    low, high = rate.interval.low or 0.0, _high(rate.interval)
    return rate.value**steps, (low**steps, high**steps)


def difference_interval(more: float, less: float, pairs: int) -> Interval:
    """Return the 95 % interval of a paired difference of shares from the two kinds of unequal pairs.

    Each kind has a Wilson interval at 97.5 %, so that both hold together at 95 %
    (Bonferroni). A bootstrap of pairs that are all equal would have no width.
    Where pairs differ in part only, ``more`` and ``less`` are sums of those
    parts, rounded outwards: nothing between 0 and 1 varies more than 0 and 1 do.

    Raises:
        ValueError: there is no pair.
    """
    (least, most), (fewest, highest) = (_outwards(count, pairs) for count in (more, less))
    return Interval(least - highest, most - fewest, LEVEL)


def _outwards(count: float, pairs: int) -> tuple[float, float]:
    below, above = (wilson(end, pairs, (1 + LEVEL) / 2) for end in (math.floor(count), math.ceil(count)))
    if below is None or above is None:
        raise ValueError("no pair")
    return below.low or 0.0, _high(above)


def bounds_of(interval: Interval) -> list[float | None]:
    """Return an interval for JSON, where the level is stated beside all of them."""
    return [interval.low, interval.high]


def _high(interval: Interval) -> float:
    return 1.0 if interval.high is None else interval.high
