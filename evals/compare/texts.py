"""The sequences that are compared when no corpus is named: slices of the committed texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probes.context_curve import LANGUAGES, load_text
from ringtrue.errors import UsageError


def embedded_sequences(
    encode: Callable[[str], tuple[int, ...]], *, length: int, count: int, seed: int
) -> list[tuple[int, ...]]:
    """Return ``count`` sequences of ``length`` tokens: English, code, JSON and Chinese in turns.

    No two overlap. The same arguments give the same sequences.

    Raises:
        UsageError: the texts hold fewer sequences of that length.
    """
    rng = np.random.default_rng(seed)
    slices = [_shuffled(encode(load_text(language)), length, rng) for language in LANGUAGES]
    total = sum(map(len, slices))
    if total < count:
        raise UsageError(
            f"the embedded texts hold {total} sequences of {length:,} tokens, not {count}",
            remedy="Ask for fewer or shorter ones, or name a corpus with --corpus",
        )
    chosen: list[tuple[int, ...]] = []
    while len(chosen) < count:
        chosen += [kind.pop() for kind in slices if kind][: count - len(chosen)]
    return chosen


def _shuffled(ids: tuple[int, ...], length: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    starts = rng.permutation(len(ids) // length) * length
    return [ids[start : start + length] for start in starts.tolist()]
