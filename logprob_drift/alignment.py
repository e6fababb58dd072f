"""From a top-k list to cells that can be compared with the reference (docs/methods.md, "Hygiene")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from logprob_drift.vocabulary import Ids, Vocabulary
from ringtrue.records import Position, TokenLogprob

SUM_TOLERANCE = 1e-3  # how far above 1 a row's probabilities may sum
IMPLAUSIBLE = -40.0  # nats; below it only beside a row whose mass is all seen
MASS_SEEN = 1e-6  # unseen mass at which such a value can be genuine


class Defect(StrEnum):
    """Why a row, or an entry of it, can't be used."""

    EMPTY = "empty"
    NOT_A_NUMBER = "not_a_number"
    POSITIVE = "positive"
    SENTINEL = "sentinel"
    SUM_ABOVE_ONE = "sum_above_one"
    DUPLICATE = "duplicate"
    UNIDENTIFIED = "unidentified"
    ALL_ZERO = "all_zero"


@dataclass(frozen=True, slots=True)
class Aligned:
    """The usable head of one row: cells with their logprobs (nats), best first.

    ``unseen`` is the probability outside the cells, in [0, 1]; tokens there
    are censored at ``logprobs[-1]``. ``dropped`` names what was left out.
    """

    cells: tuple[Ids, ...]
    logprobs: tuple[float, ...]
    unseen: float
    dropped: tuple[Defect, ...] = ()

    @property
    def k(self) -> int:
        """The number of cells."""
        return len(self.cells)


def align(position: Position, vocabulary: Vocabulary, *, asked: int) -> Aligned | Defect:
    """Return the cells of one generated position, or the defect that makes the row unusable.

    ``asked`` is the k that was requested: entries beyond it were appended by
    the server. So may be a sampled token that ranks last in a list sorted by
    value, and it is left out as well: at most one cell is lost by that, where
    keeping it would claim that no other token lies above it.
    """
    defect = _row_defect(position.top)
    if defect is not None:
        return defect
    entries = sorted(position.top, key=lambda entry: -entry.logprob)[:asked]
    if len(entries) > 1 and _same(entries[-1], position.sampled):
        entries = entries[:-1]
    kept, dropped = _without_sentinels(entries)
    found = [(vocabulary.find(entry), entry.logprob) for entry in kept]
    dropped += [Defect.UNIDENTIFIED for cell, _ in found if cell is None]
    named = [(cell, logprob) for cell, logprob in found if cell is not None]
    if not named:
        return dropped[0] if dropped else Defect.EMPTY
    ids = [token_id for cell, _ in named for token_id in cell]
    if len(set(ids)) < len(ids):
        return Defect.DUPLICATE
    seen = math.fsum(math.exp(logprob) for _, logprob in named)
    return Aligned(
        cells=tuple(cell for cell, _ in named),
        logprobs=tuple(logprob for _, logprob in named),
        unseen=min(1.0, max(0.0, 1.0 - seen)),
        dropped=tuple(dropped),
    )


def _row_defect(top: Sequence[TokenLogprob]) -> Defect | None:
    values = [entry.logprob for entry in top]
    if not values:
        return Defect.EMPTY
    if any(math.isnan(value) for value in values):
        return Defect.NOT_A_NUMBER
    if max(values) > SUM_TOLERANCE:
        return Defect.POSITIVE
    if len(values) > 1 and not any(values):
        return Defect.ALL_ZERO
    if math.fsum(math.exp(value) for value in values) > 1 + SUM_TOLERANCE:
        return Defect.SUM_ABOVE_ONE
    return None


def _without_sentinels(entries: Sequence[TokenLogprob]) -> tuple[list[TokenLogprob], list[Defect]]:
    plausible = [entry for entry in entries if entry.logprob > IMPLAUSIBLE]
    seen = math.fsum(math.exp(entry.logprob) for entry in plausible)
    if 1 - seen <= MASS_SEEN:
        plausible = [entry for entry in entries if entry.logprob > -math.inf and entry.logprob != -9999.0]
    return plausible, [Defect.SENTINEL] * (len(entries) - len(plausible))


def _same(one: TokenLogprob, other: TokenLogprob) -> bool:
    if one.token_id is not None and other.token_id is not None:
        return one.token_id == other.token_id
    return one.token == other.token and one.logprob == other.logprob
