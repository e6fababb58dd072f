"""Whether what is on the disk is still what was written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from reference_engine.baselines.manifest import Shard
from reference_engine.baselines.scores_table import shard_schema
from reference_engine.baselines.store import MANIFEST, StoredBaseline
from ringtrue.errors import StoreError


def require_whole(folder: Path, shard: Shard) -> None:
    """Make sure that a shard has the bytes the manifest names.

    Raises:
        StoreError: the file is missing or its bytes changed.
    """
    path = folder / shard.file
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            size = stream.tell()
    except OSError as error:
        raise _damaged(f"the shard cannot be read: {error.strerror}", path) from error
    if size != shard.bytes:
        raise _damaged(f"the shard is {size:,} bytes long instead of {shard.bytes:,}", path)
    if found != shard.sha256:
        raise _damaged("the shard is corrupt: its bytes do not have the hash in the manifest", path)


class CheckedFile(NamedTuple):
    """A file of a baseline, or its whole folder, and what is wrong with it."""

    path: Path
    damage: StoreError | None


def check_files(stored: StoredBaseline) -> Iterator[CheckedFile]:
    """Yield every shard, then the folder, each as soon as it is checked.

    The manifest's own hash was checked when it was read: it is the id.
    """
    for shard in stored.manifest.shards:
        yield CheckedFile(stored.folder / shard.file, _damage(stored, shard))
    yield CheckedFile(stored.folder, _strangers(stored))


def _strangers(stored: StoredBaseline) -> StoreError | None:
    expected = {MANIFEST, *(shard.file for shard in stored.manifest.shards)}
    found = sorted(entry.name for entry in stored.folder.iterdir() if entry.name not in expected)
    if not found:
        return None
    where, message = str(stored.folder), f"the folder holds {found[0]}, which is no part of the baseline"
    return StoreError(message, where=where, remedy="Move it elsewhere")


def _damage(stored: StoredBaseline, shard: Shard) -> StoreError | None:
    try:
        require_whole(stored.folder, shard)
        _require_columns(stored, shard)
    except StoreError as error:
        return error
    return None


def _require_columns(stored: StoredBaseline, shard: Shard) -> None:
    request, path = stored.manifest.request, stored.folder / shard.file
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (OSError, pa.ArrowInvalid) as error:
        raise _damaged(f"the shard is no Parquet file: {error}", path) from error
    if not schema.equals(shard_schema(hidden_size=request.model.hidden_size, states=request.states)):
        raise _damaged("the shard has other columns than its manifest says", path)
    if rows != shard.rows:
        raise _damaged(f"the shard has {rows:,} rows, its manifest says {shard.rows:,}", path)


def _damaged(message: str, path: Path) -> StoreError:
    return StoreError(message, where=str(path), remedy=f"Delete {path.parent} and build the baseline again")
