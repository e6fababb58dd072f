"""The folder that holds baselines, each in a folder named by its content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from reference_engine.baselines.durable import locked
from reference_engine.baselines.manifest import BaselineRequest, Manifest, parse_manifest
from ringtrue.errors import StoreError, UsageError

DEFAULT_STORE = Path("baselines")
MANIFEST = "manifest.json"

_ID = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, slots=True)
class StoredBaseline:
    """A finished baseline: its folder, whose name is its id, and its manifest."""

    folder: Path
    manifest: Manifest

    @property
    def id(self) -> str:
        """The sha256 of the manifest's bytes, as 64 hex digits."""
        return self.folder.name


@dataclass(frozen=True, slots=True)
class BaselineStore:
    """Finds baselines under ``root``, which need not exist yet."""

    root: Path = DEFAULT_STORE

    def ids(self) -> list[str]:
        """Return the ids of all finished baselines, sorted.

        Raises:
            StoreError: ``root`` is no folder that can be read.
        """
        try:
            return sorted(entry.name for entry in self.root.iterdir() if _ID.fullmatch(entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"the store cannot be read: {error.strerror}", where=str(self.root)) from error

    def get(self, name: str) -> StoredBaseline:
        """Return the baseline whose id begins with ``name``.

        The manifest's bytes are held against the id; shards are not read.

        Raises:
            UsageError: no baseline or more than one begins so.
            NewerStoreError: a newer ringtrue wrote it.
            StoreError: its manifest is missing or damaged.
        """
        return self._read(self._resolve(name))

    def all(self) -> Iterator[StoredBaseline | StoreError]:
        """Yield every finished baseline, or what is wrong with its manifest, sorted by id."""
        for baseline_id in self.ids():
            try:
                yield self._read(baseline_id)
            except StoreError as error:
                yield error

    def find(self, request: BaselineRequest) -> StoredBaseline | None:
        """Return the finished baseline that ``request`` asked for, ``None`` if there is none."""
        asked = request.digest()
        found = (baseline for baseline in self.all() if isinstance(baseline, StoredBaseline))
        return next((baseline for baseline in found if baseline.manifest.request.digest() == asked), None)

    def partial(self, request: BaselineRequest) -> Path:
        """Where the build of ``request`` works until it is finished."""
        return self.root / f".partial-{request.digest()}"

    def lock(self, request: BaselineRequest) -> AbstractContextManager[None]:
        """Keep other builds of the same request away while open.

        Raises:
            StoreError: another process builds it.
        """
        path = self.root / f".partial-{request.digest()}.lock"
        return locked(path, held_by="another process is building this baseline")

    def _resolve(self, name: str) -> str:
        found = [known for known in self.ids() if known.startswith(name)] if _PREFIX.fullmatch(name) else []
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(known[: len(name) + 8] for known in found[:3])
            raise UsageError(
                f"{len(found)} baselines begin with {name!r}",
                where=str(self.root),
                remedy=f"Give more of the id: {shown}{', ...' if len(found) > 3 else ''}",
            )
        raise UsageError(
            f"there is no baseline {name!r}",
            where=str(self.root),
            remedy="See the ids with: ringtrue baseline list, and name the folder with --store",
        )

    def _read(self, baseline_id: str) -> StoredBaseline:
        folder = self.root / baseline_id
        file = folder / MANIFEST
        try:
            data = file.read_bytes()
        except OSError as error:
            raise _damaged(f"the manifest cannot be read: {error.strerror}", file) from error
        manifest = parse_manifest(data, str(file))
        if hashlib.sha256(data).hexdigest() != baseline_id:
            raise _damaged("the manifest was changed after it was written: its hash is not the id", file)
        return StoredBaseline(folder, manifest)


def _damaged(message: str, file: Path) -> StoreError:
    return StoreError(message, where=str(file), remedy="Delete the baseline's folder and build it again")
