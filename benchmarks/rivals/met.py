"""Model equality testing as published (arXiv 2410.20247): 25 prompts, 10 samples of 50 tokens, temperature 1.

Unbiased MMD^2 with the kernel 1[same prompt] x the share of positions with
equal tokens. Labels are permuted inside each prompt, whichever batch a sample
is from: over all samples at once the test has less power still.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Tokens = NDArray[np.int32]
PROMPTS, SAMPLES, LENGTH = 25, 10, 50
PERMUTATIONS = 1000


def kernel(tokens: Tokens, prompts: NDArray[np.int64]) -> Values:
    """Return the kernel of all pairs, [samples, samples], in [0, 1]."""
    equal = (tokens[:, None, :] == tokens[None, :, :]).mean(axis=2)
    return np.asarray(equal * (prompts[:, None] == prompts[None, :]))


def p_value(
    one: Tokens,
    other: Tokens,
    prompts: tuple[NDArray[np.int64], NDArray[np.int64]],
    rng: np.random.Generator,
    draws: int = PERMUTATIONS,
) -> float:
    """Return (1 + #{permuted >= seen}) / (draws + 1) for samples [samples, tokens] of prompts [samples]."""
    asked = np.concatenate(prompts)
    gram = kernel(np.concatenate([one, other]), asked)
    np.fill_diagonal(gram, 0.0)
    n, first = len(gram), len(one)
    here = np.arange(n) < first
    shuffled = np.argsort(asked + rng.random((draws, n)), axis=1)  # by prompt, at random inside each
    labels = np.zeros((draws, n), dtype=np.bool_)
    np.put_along_axis(labels, shuffled, here[np.argsort(asked, kind="stable")][None, :], axis=1)
    permuted = _mmd2(gram, labels)
    seen = _mmd2(gram, here[None, :])[0]
    return float((1 + np.count_nonzero(permuted >= seen - 1e-12)) / (draws + 1))


def _mmd2(gram: Values, labels: NDArray[np.bool_]) -> Values:
    """Return the unbiased MMD^2, [draws], by the side of each sample, [draws, samples]; the diagonal is 0."""
    x = labels.astype(np.float64)
    m, n = x[0].sum(), len(gram) - x[0].sum()
    xg = x @ gram
    xx = (xg * x).sum(axis=1)
    xy = (xg * (1 - x)).sum(axis=1)
    yy = gram.sum() - xx - 2 * xy
    found: Values = xx / (m * (m - 1)) + yy / (n * (n - 1)) - 2 * xy / (m * n)
    return found
