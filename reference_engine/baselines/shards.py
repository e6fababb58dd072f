"""Writing one shard: a Parquet file without a clock in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reference_engine.baselines.durable import TEMPORARY_SUFFIX, DurableFile

_NAME = re.compile(r"(?P<index>\d{5,})-(?P<sha256>[0-9a-f]{64})\.parquet")


class ShardWriter:
    """Writes the row groups of one shard, in order, each as soon as its rows are there.

    Until ``finish`` the file has a temporary name; ``abandon`` removes it.
    """

    def __init__(self, folder: Path, index: int, group_rows: Sequence[int], schema: pa.Schema) -> None:
        self._folder = folder
        self._index = index
        self._group_rows = group_rows
        self._groups = 0
        self._held: list[pa.Table] = []
        self._file = DurableFile(folder / f"{index:05d}{TEMPORARY_SUFFIX}")
        try:
            self._parquet = pq.ParquetWriter(
                pa.PythonFile(self._file, mode="w"),
                schema,
                compression="zstd",
                use_dictionary=False,
                write_statistics=["sequence", "position"],  # by which readers find a sequence
            )
        except BaseException:
            self._file.remove()
            raise

    @property
    def complete(self) -> bool:
        """Whether all row groups are written."""
        return self._groups == len(self._group_rows)

    def add(self, table: pa.Table) -> None:
        """Take the next rows."""
        self._held.append(table)
        rows = self._group_rows[self._groups]
        if sum(held.num_rows for held in self._held) == rows:
            self._parquet.write_table(pa.concat_tables(self._held), row_group_size=rows)
            self._groups += 1
            self._held = []

    def finish(self) -> tuple[Path, str]:
        """Make the file durable under its name, and return its path and its sha256, which the name holds."""
        self._parquet.close()
        path = self._folder / shard_name(self._index, self._file.sha256)
        self._file.publish(path)
        return path, self._file.sha256

    def abandon(self) -> None:
        """Remove the unfinished file."""
        self._parquet.is_open = False  # else it would write its footer when it is collected
        self._file.remove()


def shard_name(index: int, sha256: str) -> str:
    """Return the name of the shard at ``index`` with this content."""
    return f"{index:05d}-{sha256}.parquet"


def named_shard(name: str) -> tuple[int, str] | None:
    """Return index and sha256 in the name of a shard, ``None`` if it is no shard's name."""
    match = _NAME.fullmatch(name)
    return (int(match["index"]), match["sha256"]) if match else None
