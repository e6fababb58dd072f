"""How the rows of a baseline are divided into blocks, row groups and shards.

The division follows from the lengths of the sequences and the width of a row
alone, never from how far a run came, so that a build that was killed ends with
the same bytes as one that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeVar

ItemT = TypeVar("ItemT")

_KEY_BYTES = 3 * 4  # sequence, position, token
_SCORE_BYTES = 4 + 4 + 8 + 8  # logprob, rank, tail mass, entropy
_ENTRY_BYTES = 4 + 4  # an ID and its logprob


@dataclass(frozen=True, slots=True)
class Layout:
    """How large the parts of a baseline may grow. Bytes are counted before compression."""

    block_bytes: int = 32 * 2**20  # what is held in memory at once
    shard_bytes: int = 256 * 2**20
    shard_rows: int = 32_768  # what a killed build loses at most

    def shard_limit(self, row_bytes: int) -> int:
        """Return how many rows of that size a shard may hold."""
        return max(1, min(self.shard_rows, self.shard_bytes // row_bytes))

    def block_rows(self, row_bytes: int) -> int:
        """Return how many rows of that size are scored together, and held as a row group."""
        return max(1, min(self.shard_limit(row_bytes), self.block_bytes // row_bytes))


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one sequence that are scored together: its positions from ``start`` up to ``stop``."""

    sequence: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """How many positions it covers."""
        return self.stop - self.start


class PlacedBlock(NamedTuple):
    """A block, and the index of the shard it goes into."""

    shard: int
    block: Block


@dataclass(frozen=True, slots=True)
class Plan:
    """A shard is a tuple of row groups, a row group a tuple of blocks; all in the order of the corpus."""

    shards: tuple[tuple[tuple[Block, ...], ...], ...]

    @property
    def rows(self) -> int:
        """Rows in all shards: one a token."""
        return sum(sum(self.group_rows(shard)) for shard in range(len(self.shards)))

    def group_rows(self, shard: int) -> list[int]:
        """Return the number of rows of each row group of the shard at index ``shard``."""
        return [sum(block.rows for block in group) for group in self.shards[shard]]

    def blocks(self) -> Iterator[PlacedBlock]:
        """Yield every block in order."""
        for index, shard in enumerate(self.shards):
            for group in shard:
                for block in group:
                    yield PlacedBlock(index, block)

    def by_sequence(self) -> Iterator[list[PlacedBlock]]:
        """Yield the blocks of each sequence, in order."""
        for _, placed in groupby(self.blocks(), key=lambda placed: placed.block.sequence):
            yield list(placed)


def row_bytes(k: int, state_bytes: int) -> int:
    """Return the size of a row with ``k`` alternatives and a state of ``state_bytes`` (0 for none)."""
    return _KEY_BYTES + _SCORE_BYTES + k * _ENTRY_BYTES + state_bytes


def make_plan(lengths: Sequence[int], *, row_bytes: int, layout: Layout) -> Plan:
    """Return the plan for sequences of these lengths (tokens) in rows of that size.

    A block is at least one row, a row group at least one block and a shard at
    least one row group, however wide a row is.
    """
    most = layout.block_rows(row_bytes)
    blocks = (block for index, length in enumerate(lengths) for block in _blocks(index, length, most))
    groups = _packed(blocks, lambda block: block.rows, most)
    shards = _packed(groups, lambda group: sum(block.rows for block in group), layout.shard_limit(row_bytes))
    return Plan(tuple(shards))


def _blocks(sequence: int, length: int, rows: int) -> Iterator[Block]:
    """Cut the scored positions 1 to length - 1; the first block takes position 0 along."""
    for start in range(1, length, rows):
        yield Block(sequence, 0 if start == 1 else start, min(start + rows, length))


def _packed(items: Iterable[ItemT], size: Callable[[ItemT], int], most: int) -> Iterator[tuple[ItemT, ...]]:
    """Yield consecutive items in tuples of at most ``most`` rows, or of one item that is larger."""
    held: list[ItemT] = []
    total = 0
    for item in items:
        if held and total + size(item) > most:
            yield tuple(held)
            held, total = [], 0
        held.append(item)
        total += size(item)
    if held:
        yield tuple(held)
