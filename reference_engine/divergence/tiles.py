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

from reference_engine.divergence.memory import in_tiles
from ringtrue.errors import MeasureError

LogitRows = Callable[[int, int], Tensor]
"""Gives the logits [stop - start, vocabulary] of rows ``start`` to ``stop``, in any floating dtype."""

_TILE_ELEMENTS = 2**24  # logits of one side held at once: 64 MiB in float32
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
        blocks = _blocks(p(start, stop), q(start, stop), start)
        return RowDivergence.concatenate([_diverge(*pair, targets[rows]) for pair, rows in blocks])

    parts = in_tiles(len(targets), tile_rows or _tile_rows(vocabulary), tile)
    return RowDivergence.concatenate(parts) if parts else _no_rows()


def tiled_kl(
    p: LogitRows, qs: Sequence[LogitRows], rows: int, *, vocabulary: int, tile_rows: int | None = None
) -> NDArray[np.float64]:
    """Return KL(P || Q) in nats, [len(qs), rows], of several ``qs`` against one ``p``.

    Each tile of P is computed once, and one tile of one Q is held beside it.

    Raises:
        MeasureError: as ``tiled_divergence``.
    """
    result = np.full((len(qs), rows), np.nan)

    def tile(start: int, stop: int) -> None:
        truth = p(start, stop)
        for index, q in enumerate(qs):
            for (left, right), block in _blocks(truth, q(start, stop), start):
                result[index, block] = _kl(_normalised(left), _normalised(right)).cpu().numpy()

    in_tiles(rows, tile_rows or _tile_rows(vocabulary), tile)
    return result


@dataclass(frozen=True, slots=True)
class _Normalised:
    """Rows of one side in float64: log-probabilities and probabilities, [rows, vocabulary]."""

    logprobs: Tensor
    probabilities: Tensor
    bounded: bool  # no probability is exactly zero by a logit of -inf


def _tile_rows(vocabulary: int) -> int:
    return max(1, _TILE_ELEMENTS // vocabulary)


def _blocks(p: Tensor, q: Tensor, offset: int) -> Iterator[tuple[tuple[Tensor, Tensor], slice]]:
    """Cut two tiles into float64 blocks, each with its rows, and refuse what is not a distribution."""
    rows = max(1, _BLOCK_ELEMENTS // p.shape[1])
    for first in range(0, p.shape[0], rows):
        last = min(first + rows, p.shape[0])
        pair = (p[first:last].double(), q[first:last].double())
        for side, values in zip(("reference", "candidate"), pair, strict=True):
            _require_numbers(values, side, offset + first)
        yield pair, slice(offset + first, offset + last)


def _require_numbers(logits: Tensor, side: str, offset: int) -> None:
    good = torch.isfinite(logits.amax(dim=1))  # NaN and inf pass through a maximum, all -inf is one
    if not bool(good.all()):
        row = offset + int((~good).nonzero()[0])
        raise MeasureError(f"the {side}'s logits are not numbers at position {row}")


def _normalised(logits: Tensor) -> _Normalised:
    logprobs = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    return _Normalised(logprobs, logprobs.exp(), bounded=bool(torch.isfinite(logprobs.min())))


def _kl(p: _Normalised, q: _Normalised) -> Tensor:
    terms = p.probabilities * (p.logprobs - q.logprobs)
    if not (p.bounded and q.bounded):
        terms = torch.where(p.probabilities > 0, terms, 0.0)  # 0 log(0 / q) is 0
    return terms.sum(dim=1).clamp_(min=0.0)


def _diverge(p_logits: Tensor, q_logits: Tensor, targets: Tensor) -> RowDivergence:
    p, q = _normalised(p_logits), _normalised(q_logits)
    middle = (p.probabilities + q.probabilities) / 2
    mixture = _Normalised(middle.log(), middle, bounded=False)
    best_p, best_q = p_logits.argmax(dim=1), q_logits.argmax(dim=1)
    wanted = targets.to(p_logits.device).unsqueeze(1)
    logprob_p, logprob_q = p.logprobs.gather(1, wanted)[:, 0], q.logprobs.gather(1, wanted)[:, 0]
    better = q_logits > q_logits.gather(1, best_p.unsqueeze(1))
    entropy = -torch.where(p.probabilities > 0, p.probabilities * p.logprobs, 0.0).sum(dim=1)
    columns = (
        _kl(p, q),
        _kl(q, p),
        (_kl(p, mixture) + _kl(q, mixture)) / 2,
        best_p == best_q,
        better.sum(dim=1) + 1,
        logprob_p,
        logprob_q,
        logprob_q.exp() - logprob_p.exp(),
        entropy.clamp_(min=0.0),
    )
    return RowDivergence(*(column.cpu().numpy() for column in columns))


def _no_rows() -> RowDivergence:
    empty = np.empty(0)
    return RowDivergence(
        empty, empty, empty, empty.astype(bool), empty.astype(np.int64), empty, empty, empty, empty
    )
