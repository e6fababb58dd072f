"""Drawing a token from a distribution."""

from __future__ import annotations

import numpy as np

from ringtrue.endpoint import LogprobRow


class Sampler:
    """Draws tokens at one temperature and top_p; equal seeds draw equal tokens from equal rows.

    ``top_k`` leaves the k likeliest tokens, before top_p does; ``None`` leaves
    all. ``skip_first`` takes the likeliest one away before that, so that k
    tokens from the second on are left, ``ending`` tokens get ``end_bias`` (nats)
    added to their logits: faults, not modes of sampling.
    """

    def __init__(
        self,
        temperature: float,
        top_p: float,
        seed: int,
        *,
        top_k: int | None = None,
        skip_first: bool = False,
        ending: frozenset[int] = frozenset(),
        end_bias: float = 0.0,
    ) -> None:
        self._temperature = temperature
        self._top_p = top_p
        self._top_k = top_k
        self._skip_first = skip_first
        self._ending = sorted(ending)
        self._end_bias = end_bias
        self._rng = np.random.default_rng(seed)

    def draw(self, row: LogprobRow) -> int:
        """Return one token ID; temperature 0 takes the most likely, the lowest ID of equals."""
        if self._end_bias:
            row = row.copy()
            row[self._ending] += self._end_bias
        if self._temperature == 0:
            return int(row.argmax())
        order = np.argsort(-row, kind="stable")[int(self._skip_first) :][: self._top_k]
        scaled = row[order].astype(np.float64) / self._temperature
        weights = np.exp(scaled - scaled[0])
        cumulative = np.cumsum(weights / weights.sum())
        # The smallest set of likeliest tokens whose probability reaches top_p.
        kept = min(int(np.searchsorted(cumulative, self._top_p)) + 1, len(order))
        point = self._rng.random() * cumulative[kept - 1]
        return int(order[min(int(np.searchsorted(cumulative, point, side="right")), kept - 1)])
