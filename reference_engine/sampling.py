"""Drawing a token from a distribution."""

from __future__ import annotations

import numpy as np

from ringtrue.endpoint import LogprobRow


class Sampler:
    """Draws tokens at one temperature and top_p; equal seeds draw equal tokens from equal rows."""

    def __init__(self, temperature: float, top_p: float, seed: int) -> None:
        self._temperature = temperature
        self._top_p = top_p
        self._rng = np.random.default_rng(seed)

    def draw(self, row: LogprobRow) -> int:
        """Return one token ID; temperature 0 takes the most likely, the lowest ID of equals."""
        if self._temperature == 0:
            return int(row.argmax())
        scaled = row.astype(np.float64) / self._temperature
        weights = np.exp(scaled - scaled.max())
        order = np.argsort(-weights, kind="stable")
        cumulative = np.cumsum(weights[order] / weights.sum())
        # The smallest set of likeliest tokens whose probability reaches top_p.
        kept = min(int(np.searchsorted(cumulative, self._top_p)) + 1, len(order))
        point = self._rng.random() * cumulative[kept - 1]
        return int(order[min(int(np.searchsorted(cumulative, point, side="right")), kept - 1)])
