"""Divergence of two distributions over the whole vocabulary, without holding rows x vocabulary.

Logits are asked for in tiles of rows. Within a tile everything is computed in
float64, in blocks small enough for the processor's cache: in float32 the worst
row of a small divergence is wrong by per cents (docs/methods.md, "Full
vocabulary"). Reductions run along one row at a time, so that the result does
not depend on how rows were cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reference_engine.divergence.in_tiles import in_tiles
from ringtrue.errors import MeasureError

LogitRows = Callable[[int, int], Tensor]
"""Gives the logits [stop - start, vocabulary] of rows ``start`` to ``stop``, in any floating dtype."""

_TILE_ELEMENTS = 2**24  # logits of one side held at once: 64 MiB in float32
_SHARED_TILE_ELEMENTS = 2**23  # logits of P that several Q are held against: 160 MiB with what is kept
_BLOCK_ELEMENTS = 2**18  # float64 temporaries: 2 MiB each, which stay in the cache


@dataclass(frozen=True, slots=True)
class RowDivergence:
    """What separates Q from the reference P at each row: float64 arrays of shape [rows], nats.

    ``kl`` is KL(P || Q), ``reverse_kl`` KL(Q || P), ``js`` the Jensen-Shannon
    divergence. ``top1`` says whether both have the same most likely token (the
    lower ID of a tie), ``rank`` is the rank in Q, 1 the first, of P's most
    likely one. ``logprob_p``, ``logprob_q`` and ``delta_p`` (Q's probability
    less P's) are of the token that stands there. ``entropy_p`` is P's.
    """

    kl: NDArray[np.float64]
    reverse_kl: NDArray[np.float64]
    js: NDArray[np.float64]
    top1: NDArray[np.bool_]
    rank: NDArray[np.int64]
    logprob_p: NDArray[np.float64]
    logprob_q: NDArray[np.float64]
    delta_p: NDArray[np.float64]
    entropy_p: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.kl.shape[0])

    @staticmethod
    def concatenate(parts: Sequence[RowDivergence]) -> RowDivergence:
        """Return the rows of all ``parts``, at least one, in their order."""
        names = [field.name for field in fields(RowDivergence)]
        return RowDivergence(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def tiled_divergence(
    p: LogitRows, q: LogitRows, targets: Tensor, *, vocabulary: int, tile_rows: int | None = None
) -> RowDivergence:
    """Return the divergence of ``q`` from ``p`` at each of the rows that ``targets`` [rows] counts.

    ``targets`` holds the token that stands at each row. A logit of -inf is a
    probability of zero; where Q has one and P has not, KL(P || Q) is inf.

    Raises:
        MeasureError: logits are not numbers (the row is named), or memory ran out even for one row.
    """

    def tile(start: int, stop: int) -> RowDivergence:
        pairs = zip(_blocks(p(start, stop)), _blocks(q(start, stop)), strict=True)
        parts = [
            _diverge(
                _Side.of(left, "reference", start + first),
                _Side.of(right, "candidate", start + first),
                targets[start + first : start + first + left.shape[0]],
            )
            for (first, left), (_, right) in pairs
        ]
        return RowDivergence.concatenate(parts)

    parts = in_tiles(len(targets), tile_rows or max(1, _TILE_ELEMENTS // vocabulary), tile)
    return RowDivergence.concatenate(parts) if parts else _no_rows()


def tiled_kl(
    p: LogitRows, qs: Sequence[LogitRows], rows: int, *, vocabulary: int, tile_rows: int | None = None
) -> NDArray[np.float64]:
    """Return KL(P || Q) in nats, [len(qs), rows], of several ``qs`` against one ``p``.

    Each tile of P is computed and normalised once; one tile of one Q is held beside it.

    Raises:
        MeasureError: as ``tiled_divergence``.
    """
    result = np.full((len(qs), rows), np.nan)

    def tile(start: int, stop: int) -> None:
        truth = [
            (block := _Side.of(logits, "reference", start + first), block.probabilities())
            for first, logits in _blocks(p(start, stop))
        ]
        for index, q in enumerate(qs):
            for (first, logits), (left, weights) in zip(_blocks(q(start, stop)), truth, strict=True):
                right = _Side.of(logits, "candidate", start + first)
                kl = _kl(weights, left, right).cpu().numpy()
                result[index, start + first : start + first + len(kl)] = kl

    in_tiles(rows, tile_rows or max(1, _SHARED_TILE_ELEMENTS // vocabulary), tile)
    return result


@dataclass(frozen=True, slots=True)
class _Side:
    """A block of one side, [rows, vocabulary]: logits as they came, log-probabilities in float64.

    ``bounded`` says that no probability is exactly zero by a logit of -inf.
    """

    logits: Tensor
    logprobs: Tensor
    bounded: bool

    @classmethod
    def of(cls, logits: Tensor, name: str, offset: int) -> _Side:
        """Normalise, and refuse what is not a distribution; ``offset`` is the position of the first row."""
        values = logits.to(torch.float64, copy=True)
        low, high = values.aminmax(dim=1, keepdim=True)
        good = torch.isfinite(high)  # NaN and inf pass through a maximum, all -inf is one
        if not bool(good.all()):
            row = offset + int((~good).nonzero()[0, 0])
            raise MeasureError(f"the {name}'s logits are not numbers at position {row}")
        values.sub_(high)
        values.sub_(values.exp().sum(dim=1, keepdim=True).log_())
        return cls(logits, values, bounded=bool(torch.isfinite(low).all()))

    def probabilities(self) -> Tensor:
        """Return the probabilities in float64."""
        return self.logprobs.exp()


def _blocks(logits: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Cut a tile into blocks of rows, each with the place of its first."""
    rows = max(1, _BLOCK_ELEMENTS // logits.shape[1])
    for first in range(0, logits.shape[0], rows):
        yield first, logits[first : first + rows]


def _kl(weights: Tensor, p: _Side, q: _Side) -> Tensor:
    """Return KL(P || Q) [rows], ``weights`` being P's probabilities."""
    return _weighed(weights, p.logprobs - q.logprobs, bounded=p.bounded and q.bounded)


def _weighed(weights: Tensor, logs: Tensor, *, bounded: bool) -> Tensor:
    """Return the sums [rows] of ``weights`` x ``logs``, not below 0. ``logs`` is used up."""
    terms = logs.mul_(weights)
    if not bounded:
        terms = torch.where(weights > 0, terms, 0.0)  # 0 log(0 / q) is 0
    return terms.sum(dim=1).clamp_(min=0.0)


def _diverge(p: _Side, q: _Side, targets: Tensor) -> RowDivergence:
    p_weights, q_weights = p.probabilities(), q.probabilities()
    middle = ((p_weights + q_weights) / 2).log_()
    js_p = _weighed(p_weights, p.logprobs - middle, bounded=False)
    js_q = _weighed(q_weights, q.logprobs - middle, bounded=False)
    best_p, best_q = p.logits.argmax(dim=1), q.logits.argmax(dim=1)
    wanted = targets.to(p.logits.device).unsqueeze(1)
    logprob_p, logprob_q = (side.logprobs.gather(1, wanted)[:, 0] for side in (p, q))
    better = q.logits > q.logits.gather(1, best_p.unsqueeze(1))
    columns = (
        _kl(p_weights, p, q),
        _kl(q_weights, q, p),
        (js_p + js_q) / 2,
        best_p == best_q,
        better.sum(dim=1) + 1,
        logprob_p,
        logprob_q,
        logprob_q.exp() - logprob_p.exp(),
        _weighed(p_weights, -p.logprobs, bounded=p.bounded),
    )
    return RowDivergence(*(column.cpu().numpy() for column in columns))


def _no_rows() -> RowDivergence:
    empty = np.empty(0)
    return RowDivergence(
        empty, empty, empty, empty.astype(bool), empty.astype(np.int64), empty, empty, empty, empty
    )
