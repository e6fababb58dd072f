"""Files that are whole or not there: written aside, synced, and renamed."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ringtrue.errors import StoreError

TEMPORARY_SUFFIX = ".tmp"


class DurableFile:
    """A file that appears under its name only when all its bytes are on the disk.

    ``publish`` gives it its name, ``remove`` gives it up. A process that is
    killed before leaves it under its temporary name.
    """

    def __init__(self, temporary: Path) -> None:
        self._temporary = temporary
        self._stream = temporary.open("wb")
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Append ``data`` and return its length in bytes; what comes after ``remove`` goes nowhere."""
        if self._stream.closed:
            return len(data)  # a Parquet writer that is given up still writes its footer
        self._digest.update(data)
        return self._stream.write(data)

    def flush(self) -> None:
        """Hand what is buffered to the operating system."""
        if not self._stream.closed:
            self._stream.flush()

    @property
    def closed(self) -> bool:
        """Whether it takes no more bytes."""
        return self._stream.closed

    @property
    def sha256(self) -> str:
        """The hash of all bytes so far, as 64 hex digits."""
        return self._digest.hexdigest()

    def publish(self, path: Path) -> None:
        """Sync the bytes, rename the file to ``path`` and sync its folder."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        self._temporary.replace(path)
        sync_folder(path.parent)

    def remove(self) -> None:
        """Delete what was written, unless it was published."""
        with suppress(OSError):  # what could not be flushed is not wanted
            self._stream.close()
        self._temporary.unlink(missing_ok=True)


def write_durably(path: Path, data: bytes) -> None:
    """Write a small file whole, over one that may be there."""
    file = DurableFile(path.with_name(path.name + TEMPORARY_SUFFIX))
    try:
        file.write(data)
        file.publish(path)
    finally:
        file.remove()


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, *, held_by: str) -> Iterator[None]:
    """Hold the lock file ``path`` while open. The lock ends with its process, however that ends.

    ``held_by`` says who else may hold it, for the error.

    Raises:
        StoreError: somebody holds it.
    """
    descriptor = _opened(path)
    try:
        _take(descriptor, path, held_by)
        while not _is_still(descriptor, path):  # its last holder removed it between our open and our lock
            os.close(descriptor)
            descriptor = _opened(path)
            _take(descriptor, path, held_by)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _take(descriptor: int, path: Path, held_by: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StoreError(held_by, where=str(path.parent), remedy="Wait for it to end") from error


def _is_still(descriptor: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
