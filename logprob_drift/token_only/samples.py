"""Are two sets of sampled answers from one distribution? (docs/methods.md, "Samples").

Two-sample test of Gao et al. 2024 ("Model Equality Testing", arXiv
2410.20247): unbiased MMD^2 with the kernel 1[same prompt] x share of equal
token positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringtrue.stats import Values

PAD = -1  # after the end of an answer; two that have both ended agree there

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SampleTest:
    """``mmd2`` has expectation 0 for equal distributions; ``p_value`` is never 0."""

    mmd2: float
    p_value: float
    permutations: int


def hamming_kernel(answers: Tokens) -> Values:
    """Return the share of equal positions of each pair, [prompts, n, n], of answers [prompts, n, length]."""
    prompts, count, length = answers.shape
    kernel: Values = np.zeros((prompts, count, count))
    for position in range(length):  # one position at a time: all at once would take length x the memory
        column = answers[:, :, position]
        kernel += column[:, :, None] == column[:, None, :]
    kernel /= length
    return kernel


def mmd2(kernel: Values, first: NDArray[np.bool_]) -> Values:
    """Return unbiased MMD^2, averaged over prompts, for each way to divide the answers, [ways].

    ``first`` [ways, prompts, n] marks the answers of the first set; both sets
    hold at least two of each prompt. ``kernel`` [prompts, n, n].
    """
    labels = first.astype(np.float64)
    n = labels.sum(axis=2)
    m = labels.shape[2] - n
    total = kernel.sum(axis=2)
    own = np.diagonal(kernel, axis1=1, axis2=2)
    rows = np.stack([way @ matrix for way, matrix in zip(labels.transpose(1, 0, 2), kernel, strict=True)])
    within = (rows.transpose(1, 0, 2) * labels).sum(axis=2)
    all_first = (labels * total).sum(axis=2)
    across = all_first - within
    rest = total.sum(axis=1) - all_first - across
    diagonal = (labels * own).sum(axis=2)
    other = own.sum(axis=1) - diagonal
    values = (within - diagonal) / (n * (n - 1)) + (rest - other) / (m * (m - 1)) - 2 * across / (n * m)
    mean: Values = values.mean(axis=1)
    return mean


def permutation_test(
    first: Tokens, second: Tokens, rng: np.random.Generator, permutations: int = 999
) -> SampleTest:
    """Test two sets of answers, [prompts, n, length] and [prompts, m, length], padded with `PAD`.

    Answers are exchanged within their prompt only. Valid when the answers of
    a prompt are exchangeable under the null: **both sets from one window**
    (endpoint beside reference, interleaved), since answers of another night
    share that night's batches. Between nights use `night_series`. Draws are
    p = (1 + #{>=}) / (permutations + 1).

    Raises:
        ValueError: other prompts or lengths, or fewer than two answers a prompt.
    """
    _require_pairs(first, second)
    pooled = np.concatenate([first, second], axis=1)
    kernel = hamming_kernel(pooled)
    prompts, count = pooled.shape[:2]
    kept = np.zeros((1, prompts, count), dtype=bool)
    kept[:, :, : first.shape[1]] = True
    order = rng.random((permutations, prompts, count)).argsort(axis=2)
    drawn = mmd2(kernel, order < first.shape[1])
    seen = float(mmd2(kernel, kept)[0])
    return SampleTest(seen, float((1 + (drawn >= seen - 1e-12).sum()) / (permutations + 1)), permutations)


def night_series(nights: Tokens, baseline: int) -> Values:
    """Return one number a night for the night detector, [nights]: MMD^2 against the baseline nights.

    ``nights`` [nights, prompts, n, length]. A baseline night is held against
    the other baseline nights, so that its own answers are not among what it
    is compared with. Answers are never exchanged between nights: how far
    honest nights lie apart is what the detector learns from the series.

    Raises:
        ValueError: fewer than 2 baseline nights, or than 2 answers a prompt.
    """
    if not 2 <= baseline <= nights.shape[0] or nights.shape[2] < 2:
        raise ValueError(
            f"{baseline} baseline nights of {nights.shape[0]}, {nights.shape[2]} answers a prompt"
        )
    series = np.zeros(nights.shape[0])
    for night in range(nights.shape[0]):
        others = [i for i in range(baseline) if i != night]
        past = np.concatenate(list(nights[others]), axis=1)
        kernel = hamming_kernel(np.concatenate([nights[night], past], axis=1))
        mine = np.zeros((1, kernel.shape[0], kernel.shape[1]), dtype=bool)
        mine[:, :, : nights.shape[2]] = True
        series[night] = mmd2(kernel, mine)[0]
    return series


def _require_pairs(first: Tokens, second: Tokens) -> None:
    if first.shape[0] != second.shape[0] or first.shape[2] != second.shape[2]:
        raise ValueError(f"answers of shape {first.shape} beside {second.shape}")
    if min(first.shape[1], second.shape[1]) < 2:
        raise ValueError("fewer than two answers a prompt")
