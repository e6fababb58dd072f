"""Which registered model explains the answers better than the reference? (docs/methods.md, "Identity").

A prompt's *gain* is what a registered model R leaves unexplained less than
the reference P: KL(Q||P) - KL(Q||R) for the observed distribution Q, which is
the log-likelihood ratio that Q itself expects of one token, in nats. The
prompt is the unit, never the token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from logprob_drift.alignment import Aligned
from logprob_drift.studentized import mean_limits
from logprob_drift.truncated import truncated_kl
from ringtrue.endpoint import LogprobRow
from ringtrue.records import Interval
from ringtrue.stats import Values

NEEDS = 16  # prompts for an answer
ERROR = 0.01  # chance that any of the registered models gains by luck alone
SHARE = 0.5  # of the divergence from the reference: what a model leaves must be less to explain it
_LEAST = -87.0  # nats; a token that a model all but excludes counts as one it gives this


class Fit(StrEnum):
    """What a registered model is to the answers, best first."""

    EXPLAINS = "explains"
    CLOSER = "closer"  # than the reference, but most of the divergence stays
    NO = "no"
    UNKNOWN = "unknown"  # too few prompts


@dataclass(frozen=True, slots=True)
class Candidate:
    """One registered model.

    ``gain`` is its mean over prompts (nats; ``None`` without prompts) and
    ``interval`` that mean's, with one-sided limits corrected for the number of
    registered models. ``remaining`` is what the model itself leaves, the mean
    of KL(Q||R) (``None`` where only likelihoods are known). ``detectable`` is
    the smallest mean gain with which these prompts would have shown a model
    that explains the answers.
    """

    name: str
    fit: Fit
    n: int
    gain: float | None = None
    interval: Interval | None = None
    remaining: float | None = None
    detectable: float | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """All registered models, best first, and what the reference leaves, the mean of KL(Q||P) in nats.

    ``level_with_best`` names models that explain the answers too and whose
    gain these prompts can't tell from the best one's.
    """

    candidates: tuple[Candidate, ...]
    n: int
    divergence: float | None = None
    level_with_best: tuple[str, ...] = ()

    @property
    def best(self) -> Candidate | None:
        """The best candidate, whether or not it explains anything; ``None`` with none registered."""
        return self.candidates[0] if self.candidates else None

    @property
    def fit(self) -> Fit:
        """What the best candidate is to the answers."""
        return self.best.fit if self.best is not None else Fit.UNKNOWN

    @property
    def detectable(self) -> float | None:
        """The gain (nats) with which any of the registered models would have been found."""
        found = [one.detectable for one in self.candidates]
        known = [value for value in found if value is not None]
        return max(known) if known and len(known) == len(found) else None

    @property
    def missing(self) -> int:
        """How many more prompts an answer needs."""
        return max(0, NEEDS - self.n)


def unexplained(row: LogprobRow, observed: Aligned) -> float:
    """Return KL(Q||row) in nats on the listed tokens and one tail bucket; Q is ``observed``.

    ``row`` has shape [vocabulary]. As in `divergence.diverge` a lower bound of
    the true value; with the same cells for every model, gains are differences
    on one partition.
    """
    listed = np.array([observed.logprobs], dtype=np.float32)
    own = np.array([[np.logaddexp.reduce(row[list(cell)]) for cell in observed.cells]], dtype=np.float32)
    return float(truncated_kl(listed, np.maximum(own, np.float32(_LEAST)))[0])


def judge(
    reference: Values,
    registered: Mapping[str, Values],
    rng: np.random.Generator,
    *,
    tokens: Values | None = None,
) -> Identity:
    """Return which of ``registered`` explains the answers.

    ``reference`` is what P leaves unexplained, [prompts] in nats, and
    ``registered`` the same of each model, paired: `unexplained` of each
    prompt. For greedy answers without logprobs it is the margin (what a
    model's best logprob exceeds that of the chosen token by, at least 0),
    summed over the tokens of each prompt, with ``tokens`` [prompts] their
    number: it is 0 for the model that chose them, so that a model which is
    merely surer of everything gains nothing. Means are then per token.

    A model EXPLAINS the answers when the lower limit of its mean gain is
    positive and it leaves less than `SHARE` of what the reference leaves;
    with the first alone it is CLOSER. Fewer than `NEEDS` prompts: UNKNOWN.
    The limit is a bootstrap over prompts (`mean_limits`) at `ERROR` over the
    number of models (Bonferroni); simulated rates stand in docs/methods.md.

    Raises:
        ValueError: shapes differ, or a value is negative or not finite.
    """
    for name, left in {"the reference": reference, **registered}.items():
        if not bool(np.isfinite(left).all()) or bool((left < 0).any()):
            raise ValueError(f"{name}: what a model leaves unexplained is finite and not negative")
    gains = {name: reference - _paired(left, reference) for name, left in registered.items()}
    weights = np.ones_like(reference) if tokens is None else tokens
    return _ranked(gains, weights, reference, rng)


def judge_samples(scores: Mapping[str, Values], tokens: Values, rng: np.random.Generator) -> Identity:
    """Return the same from tokens sampled at temperature 1, without any logprobs of the endpoint.

    ``scores`` holds, for each registered model R, the sum over a prompt's
    tokens of log R(token) - log P(token) with both teacher-forced, [prompts]
    in nats; ``tokens`` [prompts] are their numbers, and gains are per token.
    What a model itself leaves is then unknown, so that EXPLAINS means only
    that it is more likely than the reference.

    Greedy tokens are no samples: of them the sum is a score, not a
    log-likelihood ratio. The bootstrap over prompts calibrates its spread but
    not its centre, and a model that is surer than the reference of everything
    scores above 0 on the reference's own choices. Give `judge` their margins.

    Raises:
        ValueError: shapes differ, or a value is not finite.
    """
    for name, sums in scores.items():
        if not bool(np.isfinite(sums).all()):
            raise ValueError(f"{name}: a score is not finite")
    return _ranked({name: _paired(sums, tokens) for name, sums in scores.items()}, tokens, None, rng)


def _paired(values: Values, beside: Values) -> Values:
    if values.shape != beside.shape:
        raise ValueError(f"{values.shape} values beside {beside.shape}")
    return values


def _ranked(
    gains: Mapping[str, Values], weights: Values, reference: Values | None, rng: np.random.Generator
) -> Identity:
    """Judge each model by the weighted means of its gains, [prompts] each."""
    count = int(weights.shape[0])
    if bool((weights <= 0).any()):
        raise ValueError("every prompt needs at least one token")
    total = float(weights.sum())
    left = None if reference is None or not count else float(reference.sum()) / total
    means = {name: float(values.sum()) / total for name, values in gains.items()} if count else {}
    if count < NEEDS or not gains:
        unknown = [Candidate(name, Fit.UNKNOWN, count, means.get(name)) for name in gains]
        return Identity(tuple(unknown), count, left)
    level = 1 - 2 * ERROR / len(gains)
    limits = mean_limits(np.column_stack(list(gains.values())), weights, rng, level)
    candidates = [
        _candidate(name, count, means[name], limit, left) for name, limit in zip(gains, limits, strict=True)
    ]
    order = list(Fit)
    ranked = sorted(candidates, key=lambda one: (order.index(one.fit), -means[one.name]))
    return Identity(tuple(ranked), count, left, _level_with_best(ranked, gains, weights, rng))


def _level_with_best(
    ranked: Sequence[Candidate], gains: Mapping[str, Values], weights: Values, rng: np.random.Generator
) -> tuple[str, ...]:
    best, *rest = [one.name for one in ranked if one.fit is Fit.EXPLAINS] or [""]
    if not rest:
        return ()
    differences = np.column_stack([gains[best] - gains[name] for name in rest])
    limits = mean_limits(differences, weights, rng, 1 - 2 * ERROR / len(gains))
    return tuple(
        name
        for name, limit in zip(rest, limits, strict=True)
        if limit is None or limit.low is None or limit.low <= 0
    )


def _candidate(
    name: str, count: int, gain: float, interval: Interval | None, left: float | None
) -> Candidate:
    remaining = None if left is None else left - gain
    if interval is None or interval.low is None:
        return Candidate(name, Fit.UNKNOWN, count, gain, None, remaining)
    fit = Fit.NO
    if interval.low > 0:
        small = left is None or gain > (1 - SHARE) * left
        fit = Fit.EXPLAINS if small else Fit.CLOSER
    spread = gain - interval.low
    detectable = spread if left is None else max(spread, (1 - SHARE) * left)
    return Candidate(name, fit, count, gain, interval, remaining, detectable)
