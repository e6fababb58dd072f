"""Greedy answers held against the reference's own choice (docs/methods.md, "Greedy margins").

An endpoint without logprobs answers at temperature 0; the reference is
teacher-forced on its tokens. Where the reference would have chosen another
token, the margin says by how much. Method: Token-DiFR (arXiv 2511.20621),
with the prompt, not the token, as the unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alarms.metric import Metric, Scale
from logprob_drift.night import NUMERIC, POOL_NEEDS, RATIO
from ringtrue.records import Interval, State
from ringtrue.stats import Values, bootstrap_means

CLIP = 0.5  # nats; beyond it a token is simply another one
EXACT = 2e-4  # nats; two exact computations of one logprob may differ by so much
MARGIN = Metric(resolution=EXACT, scale=Scale.LOG, unit="nats")  # of a night, for the night detector


def token_margins(best: Values, chosen: Values) -> Values:
    """Return max_v z_v - z_token (nats, clipped to [0, `CLIP`]) per token.

    ``best`` is the reference's logprob of its most likely token, ``chosen``
    that of the token the endpoint generated, both of shape [tokens]. A chosen
    token that the reference excludes (-inf) has the largest margin.

    Raises:
        ValueError: shapes differ, a value is NaN, or a chosen token is more likely than the best.
    """
    if best.shape != chosen.shape:
        raise ValueError(f"{best.shape} best logprobs beside {chosen.shape} chosen ones")
    if not bool(np.isfinite(best).all()) or bool(np.isnan(chosen).any()):
        raise ValueError("a logprob is not a number")
    difference = best - chosen
    if bool((difference < -EXACT).any()):
        raise ValueError("a chosen token is more likely than the reference's most likely one")
    margins: Values = np.clip(difference, 0.0, CLIP)
    return margins


def choice_margins(choices: NDArray[np.int64], top_ids: NDArray[np.int64], top: Values) -> Values:
    """Return the margins (nats) of the tokens that another computation of the model would choose, [tokens].

    ``choices`` [tokens]; ``top_ids`` and ``top`` [tokens, k] are the
    reference's likeliest tokens and their logprobs, best first. A choice
    outside the list has the largest margin, `CLIP`: that is where the margin
    would have been clipped, unless k tokens lie closer together than that.
    """
    listed = top_ids == choices[:, None]
    found = np.where(listed, top, -np.inf).max(axis=1)
    margins: Values = np.clip(top[:, 0] - found, 0.0, CLIP)
    return margins


def prompt_margins(margins: Values, prompt: NDArray[np.int64], prompts: int) -> Values:
    """Return the mean margin of each prompt (nats, [prompts]); NaN for a prompt that was not answered.

    ``margins`` and ``prompt``, the number of the prompt each token answers,
    have shape [tokens]. Tokens of one answer depend on one another, so nothing
    below the prompt is ever counted.
    """
    count = np.bincount(prompt, minlength=prompts)
    total = np.bincount(prompt, weights=margins, minlength=prompts)
    means: Values = np.divide(total, count, out=np.full(prompts, np.nan), where=count > 0)
    return means


def night_number(margins: Values) -> float | None:
    """Return the night's number of a stream (`MARGIN`), the mean over answered prompts; ``None`` for none."""
    answered = margins[~np.isnan(margins)]
    return float(answered.mean()) if answered.size else None


@dataclass(frozen=True, slots=True)
class MarginNight:
    """What one batch says beside the reference's own replay of the same prompts.

    ``interval`` is that of mean(margin) - `RATIO` x mean(replay margin), in
    nats, with one-sided limits: CHANGED when its lower limit is positive.
    ``margin`` is that of mean(margin). ``detectable`` is the smallest mean
    margin (nats) that these prompts would have shown as CHANGED. Harm can't be
    read off a margin: there is no WORSE.
    """

    state: State
    n: int
    mean: float | None
    replay: float | None
    interval: Interval | None
    detectable: float | None
    needed: int = POOL_NEEDS
    margin: Interval | None = None


def compare_with_replay(
    margins: Values, replay: Values, rng: np.random.Generator, *, level: float = 0.98
) -> MarginNight:
    """Judge one batch: mean margins of the endpoint and of the reference's replay, [prompts], paired.

    The replay is what the reference in the endpoint's dtype would have chosen,
    either generating by itself or at each place of the endpoint's own answers.
    NaN is a prompt that one of the two did not answer; it is left out. Each
    limit holds with ``(1 + level) / 2``, 99 % by default; whoever looks twice
    asks for 0.99, so that each look has half of the errors. The factor `RATIO` of room is the
    assumption: an honest endpoint's kernels and batches move its margins by
    less than that. It also absorbs what the prompts of one batch share, which
    no test over prompts can see.

    Simulated false alarms: docs/methods.md, "Greedy margins".

    Raises:
        ValueError: when the shapes differ.
    """
    if margins.shape != replay.shape:
        raise ValueError(f"margins of {margins.shape} prompts beside {replay.shape}")
    both = ~(np.isnan(margins) | np.isnan(replay))
    mine, theirs = margins[both], replay[both]
    count = int(mine.shape[0])
    mean = float(mine.mean()) if count else None
    own = float(theirs.mean()) if count else None
    if count < POOL_NEEDS or mean is None:
        return MarginNight(State.UNKNOWN, count, mean, own, None, None)
    means = bootstrap_means(np.column_stack([mine - RATIO * theirs, mine]), rng)
    (low, mean_low), (high, mean_high) = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return MarginNight(
        State.CHANGED if low > NUMERIC else State.OK,
        count,
        mean,
        own,
        Interval(float(low), float(high), level),
        max(mean - float(low), NUMERIC),
        margin=Interval(float(mean_low), float(mean_high), level),
    )
