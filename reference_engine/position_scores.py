"""What a model thought of every token of one sequence: the rows of a baseline."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PositionScores:
    """The scores of consecutive tokens of one sequence, one row a token.

    A whole sequence of n tokens has n - 1 rows: the first token has none,
    since nothing precedes it. A row describes the distribution that the
    tokens before its own give:

    - ``logprobs`` [rows], nats, and ``ranks`` [rows], 1 the most likely, of the token that stands there;
    - ``top_ids`` and ``top_logprobs`` [rows, k] of the k most likely tokens, best first, ties by lower ID;
    - ``tail_mass`` [rows], the probability of all other tokens;
    - ``entropy`` [rows], nats, of the whole distribution; ``None`` where only a top-k is known;
    - ``states`` [rows, hidden], the post-norm hidden state that the head turns into the distribution, in
      float32 whatever the model's dtype; ``None`` unless asked for.
    """

    logprobs: NDArray[np.float32]
    ranks: NDArray[np.int64]
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]
    tail_mass: NDArray[np.float64]
    entropy: NDArray[np.float64] | None
    states: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        """Return the number of scored positions."""
        return int(self.logprobs.shape[0])

    def rows(self, start: int, stop: int) -> PositionScores:
        """Return a view of the rows from ``start`` up to, not including, ``stop``."""
        columns: Iterator[Any] = (getattr(self, field.name) for field in fields(self))
        cut: Iterator[Any] = (None if column is None else column[start:stop] for column in columns)
        return PositionScores(*cut)

    def blocks(self, rows: int) -> Iterator[PositionScores]:
        """Yield all rows in order, ``rows`` at a time, the last block shorter: views."""
        for start in range(0, len(self), rows):
            yield self.rows(start, start + rows)

    @classmethod
    def joined(cls, blocks: Sequence[PositionScores]) -> PositionScores:
        """Return the rows of all ``blocks``, of which there is at least one, in one piece."""
        columns = ([getattr(block, field.name) for block in blocks] for field in fields(cls))
        whole: Iterator[Any] = (None if c[0] is None else np.concatenate(c) for c in columns)
        return cls(*whole)


class ScoreSource(Protocol):
    """Whoever can score whole sequences: the reference engine, or a server that does it faster."""

    @property
    def context_length(self) -> int:
        """The longest sequence it takes, in tokens."""

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens a distribution is over."""

    def score(
        self, ids: Sequence[int], *, k: int, states: bool, rows_per_block: int
    ) -> AsyncGenerator[PositionScores, None]:
        """Yield the scores of one sequence of at least two tokens, in blocks of consecutive positions.

        Blocks come in order and cover each of the ``len(ids) - 1`` scored
        positions once. Each holds ``rows_per_block`` rows, the last maybe
        fewer, so that whoever takes them never holds more than that: with k
        the whole vocabulary a sequence would be gigabytes. A source that has
        a sequence in one piece yields ``PositionScores.blocks``.

        Raises, at the first block or where it happens:
            UsageError: the sequence cannot be scored, or the source cannot give so many
                alternatives, or no states.
            MeasureError: the source failed, or some score is not a number (the message says where).
        """
