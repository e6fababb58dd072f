"""The folder a build works in: what an earlier run left there, and how it becomes a baseline."""

from __future__ import annotations

import hashlib
from pathlib import Path

from reference_engine.baselines.durable import sync_folder, write_durably
from reference_engine.baselines.manifest import Manifest, Shard
from reference_engine.baselines.plan import Plan
from reference_engine.baselines.shards import named_shard
from reference_engine.baselines.store import MANIFEST, BaselineStore, StoredBaseline
from ringtrue.errors import StoreError


def kept_shards(folder: Path, plan: Plan) -> dict[int, Shard]:
    """Return the whole shards of an earlier run by their index, and remove everything else.

    A shard counts as whole when its bytes have the hash in its name.
    """
    kept: dict[int, Shard] = {}
    for file in sorted(folder.iterdir()):
        index, sha256 = named_shard(file.name) or (-1, "")
        if 0 <= index < len(plan.shards) and index not in kept and _sha256(file) == sha256:
            kept[index] = described_shard(plan, index, file, sha256)
        else:
            file.unlink()
    return kept


def described_shard(plan: Plan, index: int, file: Path, sha256: str) -> Shard:
    """Return what the manifest says of the shard at ``index``."""
    blocks = [block for group in plan.shards[index] for block in group]
    return Shard(
        file=file.name,
        sha256=sha256,
        bytes=file.stat().st_size,
        rows=sum(block.rows for block in blocks),
        first_sequence=blocks[0].sequence,
        last_sequence=blocks[-1].sequence,
    )


def publish(store: BaselineStore, folder: Path, manifest: Manifest) -> StoredBaseline:
    """Write the manifest beside the shards and move the folder to its place, both durably.

    Raises:
        StoreError: something else is there.
    """
    write_durably(folder / MANIFEST, manifest.to_bytes())
    finished = store.root / manifest.id
    if finished.exists():
        raise StoreError(
            "a damaged copy of this baseline is in its place",
            where=str(finished),
            remedy="Delete that folder and give the same command again",
        )
    folder.rename(finished)
    sync_folder(store.root)
    return StoredBaseline(finished, manifest)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
