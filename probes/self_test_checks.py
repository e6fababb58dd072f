"""The judgements of the logprob self-test, on positions alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from ringtrue.records import Position, TokenLogprob

_SENTINEL = -1000.0  # nats: no float32 softmax over a vocabulary comes near it
_MOST_PROBABILITY = 1.0 + 1e-3
NOISE = 0.2  # nats, median over the top-k: far above half-precision noise, far below a factor of temperature
_LEAST_SHARED = 3
_TWO = (1.7, 2.3)  # the slope that a temperature of 2 leaves, with room for noise


@dataclass(frozen=True, slots=True)
class Check:
    """One check: ``passed`` is ``None`` when it could not be made."""

    name: str
    passed: bool | None
    detail: str


def judge_values(position: Position) -> tuple[Check, ...]:
    """What one position says about itself: sentinels, all zero, and the sum of its probabilities."""
    values = list(_by_identity(position).values())
    bad = [value for value in values if not math.isfinite(value) or value <= _SENTINEL or value > 1e-6]
    zero = len(values) > 1 and not any(values)
    total = sum(math.exp(value) for value in values if math.isfinite(value) and value < 1.0)
    return (
        Check("sentinels", not bad, f"{len(bad)} of {len(values)} values are NaN, above 0 or sentinels"),
        Check("all zero", not zero, f"{len(values)} values, " + ("all of them 0" if zero else "not all 0")),
        Check(
            "sum",
            total <= _MOST_PROBABILITY,
            f"the top {len(values)} probabilities sum to {total:.4f}",
        ),
    )


def compare(name: str, before: Position | None, after: Position | None, change: str) -> Check:
    """Two answers that must agree: the median difference over the tokens both list."""
    pairs = _shared(before, after)
    if len(pairs) < _LEAST_SHARED:
        missing = before is None or after is None
        reason = "no logprobs" if missing else f"only {len(pairs)} tokens in common"
        # The same question answered with other tokens is a difference; a refusal is not.
        return Check(name, None if missing or _short(before, after) else False, f"{change}: {reason}")
    difference = median(abs(first - second) for first, second in pairs)
    return Check(name, difference <= NOISE, f"{change} moves the logprobs by {difference:.3g} nats (median)")


def name_scaling(at_one: Position | None, at_two: Position | None) -> str:
    """``raw``, ``processed`` or ``unclear``, from the slope between temperatures 1 and 2.

    Differences between tokens cancel the normalisation, so a server that
    divides by the temperature shows exactly half of them at 2.
    """
    pairs = _shared(at_one, at_two)
    if len(pairs) < _LEAST_SHARED:
        return "unclear"
    top = max(pairs)
    slopes = [(top[0] - one) / (top[1] - two) for one, two in pairs if abs(top[1] - two) > 0.1]
    if len(slopes) < _LEAST_SHARED - 1:
        return "unclear"
    slope = median(slopes)
    if _TWO[0] <= slope <= _TWO[1]:
        return "processed"
    return "raw" if 0.85 <= slope <= 1.15 else "unclear"


def _shared(before: Position | None, after: Position | None) -> list[tuple[float, float]]:
    if before is None or after is None:
        return []
    first, second = _by_identity(before), _by_identity(after)
    pairs = [(first[name], second[name]) for name in first if name in second]
    return [pair for pair in pairs if all(math.isfinite(value) and value > _SENTINEL for value in pair)]


def _short(before: Position | None, after: Position | None) -> bool:
    return any(side is not None and len(_by_identity(side)) < _LEAST_SHARED for side in (before, after))


def _by_identity(position: Position) -> dict[int | bytes | str, float]:
    """Logprobs by token. Of a name that several tokens share, none is kept: they cannot be told apart."""
    values: dict[int | bytes | str, float] = {}
    ambiguous = set()
    for token in position.top or (position.sampled,):
        name = _identity(token)
        if name in values and values[name] != token.logprob:
            ambiguous.add(name)
        values[name] = token.logprob
    return {name: value for name, value in values.items() if name not in ambiguous}


def _identity(token: TokenLogprob) -> int | bytes | str:
    """ID before bytes, bytes before strings."""
    if token.token_id is not None:
        return token.token_id
    return token.raw if token.raw else token.token
