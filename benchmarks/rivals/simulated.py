"""Recorded series by simulation: nights whose requests resemble one another, with a change from one night on.

The intra-batch correlation is that between two requests of one night: the
share of a request's variance that its whole night has in common.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Rng = np.random.Generator

HONEST, NIGHTS = 60, 90  # nights before the change, nights in all


def _changed() -> NDArray[np.bool_]:
    return np.arange(NIGHTS) >= HONEST


def logprob_rows(
    rng: Rng, correlation: float, shift: float, *, nights: int = NIGHTS, requests: int = 10, tokens: int = 20
) -> Values:
    """Return logprobs [nights, requests, tokens] in nats.

    A request's SD is 0.05 nats a token, about that of a bf16 stack; the change
    moves each token by ``shift`` such SDs times a normal number of its own.
    """
    sd = 0.05
    usual = -1.0 - np.sort(rng.exponential(2.0, tokens))
    moved = shift * sd * rng.normal(size=tokens)
    night = np.sqrt(correlation) * rng.normal(size=(nights, 1, tokens))
    own = np.sqrt(1 - correlation) * rng.normal(size=(nights, requests, tokens))
    changed = (np.arange(nights) >= HONEST)[:, None, None]
    return np.asarray(usual + sd * (night + own) + changed * moved)


def border_counts(
    rng: Rng, correlation: float, outside: float, inputs: int = 20, answers: int = 10
) -> tuple[NDArray[np.int64], Values]:
    """Return counts [nights, inputs, 3] of two near-tied first tokens and all others, and the reference's.

    The changed model answers outside the tie with probability ``outside``, an
    honest one with 5e-4.
    """
    tie = rng.uniform(0.35, 0.65, inputs)
    reference = np.column_stack([tie, 1 - tie, np.zeros(inputs)])
    beyond = np.where(_changed(), outside, 5e-4)[:, None, None]
    shares = (1 - beyond) * reference + beyond * np.array([0.0, 0.0, 1.0])
    return rng.multinomial(answers, _of_the_night(rng, shares, correlation)), reference


def answers(
    rng: Rng, correlation: float, other: float, prompts: int = 10, samples: int = 4, length: int = 20
) -> NDArray[np.int64]:
    """Return tokens [nights, prompts, samples, length] of a vocabulary of 8.

    Each position of a prompt has a distribution of its own; the changed model
    mixes in another one with weight ``other``.
    """
    usual = rng.dirichlet(np.full(8, 0.3), size=(prompts, length))
    foreign = rng.dirichlet(np.full(8, 0.3), size=(prompts, length))
    shares = np.where(_changed()[:, None, None, None], (1 - other) * usual + other * foreign, usual)
    chances = _of_the_night(rng, shares, correlation).cumsum(axis=-1)
    draws = rng.random((NIGHTS, prompts, samples, length, 1))
    return (draws > chances[:, :, None, :, :-1]).sum(axis=-1)


def greedy_margins(rng: Rng, correlation: float, rate: float, prompts: int = 64, tokens: int = 20) -> Values:
    """Return margins [nights, prompts, tokens] in nats; 2 % of an honest server's tokens have one above 0.

    The changed server's share of such tokens is ``rate``. Tokens of one prompt
    and night share it, by the correlation.
    """
    share = np.where(_changed(), rate, 0.02)[:, None]
    if correlation > 0:
        size = (1 - correlation) / correlation
        # The night's correlation is a tenth of the prompt's: batches mix within a night.
        night = rng.beta(share * 10 * size, (1 - share) * 10 * size)
        night = np.clip(night, 1e-6, 1 - 1e-6)
        share = rng.beta(night * size, (1 - night) * size, size=(NIGHTS, prompts))
    departs = rng.random((NIGHTS, prompts, tokens)) < np.broadcast_to(share, (NIGHTS, prompts))[:, :, None]
    return np.asarray(departs * np.minimum(rng.exponential(0.1, departs.shape), 0.5))


def _of_the_night(rng: Rng, shares: Values, correlation: float) -> Values:
    """Return each night's own shares, Dirichlet around the usual ones with the correlation asked for."""
    if correlation == 0:
        return shares
    gammas = rng.standard_gamma(np.maximum(shares * (1 - correlation) / correlation, 1e-12))
    total = gammas.sum(axis=-1, keepdims=True)
    return np.where(total > 0, gammas / np.where(total > 0, total, 1.0), shares)
