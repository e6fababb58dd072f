"""One drawn token: in which cell of which distribution it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evals.parts.sampled.truth import Sampled, SampledPrompt
from logprob_drift.alignment import Aligned, align
from logprob_drift.token_only.sampling_alternatives import Null, null_of, with_listed
from logprob_drift.vocabulary import Vocabulary
from ringtrue.records import Exchange, Position

Name = int | tuple[int, ...] | None
"""What a token is called: its group, the IDs of a list's entry, or nothing."""


@dataclass(frozen=True, slots=True)
class ReadDraw:
    """The null that a token was drawn from, the token's cell and its name, and the cells of other names."""

    null: Null
    cell: int
    name: Name
    cells: Mapping[Name, int]

    def cell_of(self, name: Name) -> int | None:
        """Return the cell of the token drawn before, ``None`` where it has none of its own here."""
        return self.cells.get(name)


def one_token(exchange: Exchange) -> bool:
    """Return whether the server kept to the one token it was asked for, so far as it counts."""
    counted = exchange.usage.completion_tokens if exchange.usage else None
    return counted is None or counted <= 1


def read_by_reference(exchange: Exchange, prompt: SampledPrompt, sampled: Sampled) -> ReadDraw:
    """Read a draw against the reference's own distribution."""
    group = sampled.names.group_of(exchange)
    cells: dict[Name, int] = dict(prompt.cells.items())
    return ReadDraw(prompt.null, prompt.cell(group), group, cells)


def read_by_own_list(
    exchange: Exchange, prompt: SampledPrompt, vocabulary: Vocabulary, k: int
) -> ReadDraw | None:
    """Read a draw against the list that came beside it; ``None`` where that is unusable.

    The last of ``k`` entries is never used: a server may have put the drawn
    token in its place, and what the null is must not depend on the draw.
    """
    position = exchange.top_logprobs[0] if exchange.top_logprobs else None
    aligned = align(position, vocabulary, asked=k) if position is not None else None
    if position is None or not isinstance(aligned, Aligned):
        return None
    last = _kth(position, k)
    listed = [
        (ids, value) for ids, value in zip(aligned.cells, aligned.logprobs, strict=True) if value > last
    ]
    if not listed:
        return None
    values = np.array([value for _, value in listed])
    head = with_listed(prompt.head, [ids for ids, _ in listed], values, 1.0 - float(np.exp(values).sum()))
    groups = np.full(head.ids.size, -1, dtype=np.int64)
    groups[: len(listed)] = np.arange(len(listed))
    null, cell = null_of(head, groups)
    cells: dict[Name, int] = {
        ids: int(cell[at]) for at, (ids, _) in enumerate(listed) if cell[at] != null.rest
    }
    name = vocabulary.find(position.sampled)
    return ReadDraw(null, cells.get(name, null.rest), name, cells)


def _kth(position: Position, k: int) -> float:
    values = sorted((entry.logprob for entry in position.top), reverse=True)
    return values[min(k, len(values)) - 1]
