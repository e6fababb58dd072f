"""One night of border inputs: is this another model? (docs/methods.md, "Border inputs")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logprob_drift.token_only.border_inputs import CORRELATION_FLOOR, violation_e_values
from ringtrue.records import Interval, State
from ringtrue.stats import Values, wilson

LEVEL = 1000.0  # an honest night comes this far at most once in so many
EXCLUDED = 1 / 20  # e-value at which a swapped model is this much less likely than an honest one
_MOST = 1000  # inputs beyond which no count is looked for
_INTERVAL = 0.98  # limits of 99 % each


@dataclass(frozen=True, slots=True)
class BorderNight:
    """What one night's answers to border inputs say.

    Of ``n`` inputs ``violating`` had an answer outside their support.
    ``e_value`` is the evidence for another model: CHANGED when it reaches the
    level, OK when it excludes one, UNKNOWN between. ``interval`` is that of
    the share of violating inputs, ``detectable`` the smallest share that these
    inputs would have shown as CHANGED, ``None`` where even all of them would
    not: then ``needed`` says how many inputs would.
    """

    state: State
    n: int
    violating: int
    e_value: float
    interval: Interval | None
    detectable: float | None
    needed: int


def judge_night(
    violating: int,
    inputs: int,
    *,
    rate: float,
    asks: int = 1,
    looks: int = 1,
    level: float = LEVEL,
    correlation: float = CORRELATION_FLOOR,
) -> BorderNight:
    """Judge a night on which ``inputs`` border inputs were asked ``asks`` times each.

    ``rate`` is the share of honest answers outside the support
    (`violation_rate`); an input violates when any of its answers does, so the
    null has at most ``asks`` times that rate. Who judges ``looks`` times a
    night must reach as many times the level: by the union bound the night as
    a whole then alarms falsely with probability at most 1 / ``level``, if the
    inputs of a night are correlated by no more than ``correlation``.

    Raises:
        ValueError: more violations than inputs, or a rate that allows anything.
    """
    if not 0 <= violating <= inputs:
        raise ValueError(f"{violating} violations in {inputs} inputs")
    null = min(asks * rate, 0.5)
    needs = level * looks
    evidence = _evidence(inputs, null, correlation)
    e_value = float(evidence[violating])
    enough = np.flatnonzero(evidence >= needs)
    detectable = float(enough[0]) / inputs if enough.size else None
    if e_value >= needs:
        state = State.CHANGED
    elif detectable is not None and e_value <= EXCLUDED:
        state = State.OK
    else:
        state = State.UNKNOWN
    return BorderNight(
        state=state,
        n=inputs,
        violating=violating,
        e_value=e_value,
        interval=wilson(violating, inputs, _INTERVAL),
        detectable=detectable,
        needed=_needed(null, correlation, needs),
    )


def _evidence(inputs: int, rate: float, correlation: float) -> Values:
    """Return the e-value of every possible count, [inputs + 1]."""
    counts = np.arange(inputs + 1)
    return violation_e_values(counts, np.full(inputs + 1, inputs), rate, correlation)


def _needed(rate: float, correlation: float, needs: float) -> int:
    """Return the fewest inputs that, all violating, reach ``needs``, and, none violating, exclude a swap."""
    inputs = np.arange(1, _MOST + 1)
    all_of_them = violation_e_values(inputs, inputs, rate, correlation) >= needs
    none = violation_e_values(np.zeros_like(inputs), inputs, rate, correlation) <= EXCLUDED
    both = np.flatnonzero(all_of_them & none)
    return int(inputs[both[0]]) if both.size else _MOST
