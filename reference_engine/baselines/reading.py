"""Reading a baseline back, each shard held against its hash before its first row is believed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reference_engine.baselines.integrity import require_whole
from reference_engine.baselines.manifest import Manifest, Shard
from reference_engine.baselines.scores_table import from_table
from reference_engine.baselines.store import BaselineStore, StoredBaseline
from reference_engine.position_scores import PositionScores
from ringtrue.errors import ModelError, UsageError

if TYPE_CHECKING:
    from reference_engine.models.loading import LoadedModel


@dataclass(frozen=True, slots=True, eq=False)
class StoredSequence:
    """One sequence: its index in the corpus, its token IDs [n], and the scores of all but the first."""

    index: int
    token_ids: NDArray[np.int32]
    scores: PositionScores


class Baseline:
    """A finished baseline, open for reading. Not for several threads at once."""

    def __init__(self, stored: StoredBaseline) -> None:
        self._stored = stored
        self._whole: set[str] = set()  # shards whose hash was found right
        self._file: tuple[str, pq.ParquetFile] | None = None
        self._group: tuple[str, int, pa.Table] | None = None  # read last: many sequences share one

    @property
    def id(self) -> str:
        """The baseline's id, 64 hex digits."""
        return self._stored.id

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._stored.folder

    @property
    def manifest(self) -> Manifest:
        """What it is."""
        return self._stored.manifest

    def __len__(self) -> int:
        """Return the number of sequences."""
        return self.manifest.request.corpus.sequences

    def sequences(self, indices: Iterable[int] | None = None) -> Iterator[StoredSequence]:
        """Yield these sequences, or all, each whole in memory.

        Raises:
            UsageError: there is no sequence of that index.
            StoreError: a shard is missing or damaged; the file is named.
        """
        for index in range(len(self)) if indices is None else indices:
            parts = list(self._parts(index))
            ids = np.concatenate([ids for ids, _ in parts])
            yield StoredSequence(index, ids, PositionScores.joined([scores for _, scores in parts]))

    def blocks(self, index: int) -> Iterator[tuple[NDArray[np.int32], PositionScores]]:
        """Yield one sequence piece by piece, in order: token IDs, and their scores.

        The first piece has an ID more than scores, since nothing precedes the
        first token. No piece is larger than a row group, so that baselines of
        the whole vocabulary can be read in bounded memory.

        Raises:
            UsageError, StoreError: as ``sequences``.
        """
        yield from self._parts(index)

    def close(self) -> None:
        """Close the file read last."""
        if self._file is not None:
            self._file[1].close(force=True)
        self._file = self._group = None

    def _parts(self, index: int) -> Iterator[tuple[NDArray[np.int32], PositionScores]]:
        if not 0 <= index < len(self):
            raise UsageError(
                f"there is no sequence {index}",
                where=f"baseline {self.id[:12]}",
                remedy=f"They count from 0 to {len(self) - 1}",
            )
        request = self.manifest.request
        for shard in self.manifest.shards:
            if shard.first_sequence <= index <= shard.last_sequence:
                for group in self._groups_with(index, shard):
                    rows = group.filter(pc.equal(group["sequence"], index))
                    scores = from_table(rows, k=request.k, states=request.states)
                    yield rows["token_id"].to_numpy(), scores

    def _groups_with(self, sequence: int, shard: Shard) -> Iterator[pa.Table]:
        file = self._open(shard)
        for index in range(file.num_row_groups):
            held = file.metadata.row_group(index).column(0).statistics
            if held.min <= sequence <= held.max:
                if self._group is None or self._group[:2] != (shard.file, index):
                    self._group = (shard.file, index, self._open(shard).read_row_group(index))
                yield self._group[2]

    def _open(self, shard: Shard) -> pq.ParquetFile:
        if self._file is None or self._file[0] != shard.file:
            self.close()
            if shard.file not in self._whole:
                require_whole(self.folder, shard)
                self._whole.add(shard.file)
            self._file = (shard.file, pq.ParquetFile(self.folder / shard.file))
        return self._file[1]


def open_baseline(name: str, store: BaselineStore) -> Baseline:
    """Return the baseline whose id begins with ``name``.

    Raises:
        UsageError, NewerStoreError, StoreError: as ``BaselineStore.get``.
    """
    return Baseline(store.get(name))


def require_same_tokens(baseline: Baseline, model: LoadedModel) -> None:
    """Make sure that an ID of the baseline means the same to ``model``.

    Raises:
        ModelError: the vocabularies differ in size, or the tokenizers in what their IDs mean.
    """
    facts = baseline.manifest.request.model
    where = f"baseline {baseline.id[:12]} of {facts.name}"
    if model.vocabulary_size != facts.vocabulary_size:
        raise ModelError(
            f"its distributions are over {facts.vocabulary_size} tokens, "
            f"those of {model.name} over {model.vocabulary_size}",
            where=where,
            remedy="Compare with a model of the same vocabulary, or build a baseline of this one",
        )
    if model.tokenizer_hash != facts.tokenizer:
        raise ModelError(
            f"the tokenizer of {model.name} gives other IDs",
            where=where,
            remedy="Compare with a model of the same tokenizer, or build a baseline of this one",
        )
