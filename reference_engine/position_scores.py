"""What a model thought of every token of one sequence: the rows of a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PositionScores:
    """The scores of a sequence of n tokens, one row for each token but the first, which nothing precedes.

    Row i belongs to token i + 1 and describes the distribution that the
    tokens before it give:

    - ``logprobs`` [n-1], nats, and ``ranks`` [n-1], 1 the most likely, of the token that stands there;
    - ``top_ids`` and ``top_logprobs`` [n-1, k] of the k most likely tokens, best first, ties by lower ID;
    - ``tail_mass`` [n-1], the probability of all other tokens;
    - ``entropy`` [n-1], nats, of the whole distribution; ``None`` where only a top-k is known;
    - ``states`` [n-1, hidden], the post-norm hidden state that the head turns into the distribution, in
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
        """Return the number of scored positions, n - 1."""
        return int(self.logprobs.shape[0])


class ScoreSource(Protocol):
    """Whoever can score whole sequences: the reference engine, or a server that does it faster."""

    @property
    def context_length(self) -> int:
        """The longest sequence it takes, in tokens."""

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens a distribution is over."""

    async def score(self, ids: Sequence[int], *, k: int, states: bool) -> PositionScores:
        """Score one sequence of at least two tokens.

        Raises:
            UsageError: the sequence cannot be scored, or the source cannot give so many alternatives or states.
            MeasureError: the source failed, or some score is not a number (the message says where).
        """
