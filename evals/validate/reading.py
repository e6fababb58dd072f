"""Lines of recordings, as they stand on the wire; what is no exchange is told, and the rest goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ringtrue.errors import UsageError
from ringtrue.progress import ProgressReport
from ringtrue.wire import parse_json

STDIN = Path("-")
_FORMAT = 'A line is {"id", "request", "response"} or {"id", "request", "chunks", "done"}'
_STEP = 1 << 20  # bytes between two reports of progress
_KEPT = 20  # bad lines that are named; the others are counted


@dataclass(slots=True)
class BadLines:
    """The lines that are no exchange, with where and why."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, where: str, why: str) -> None:
        """Take note of one."""
        self.count += 1
        if len(self.first) < _KEPT:
            self.first.append(f"{where}: {why}")


def read_records(
    paths: Sequence[Path], bad: BadLines, progress: ProgressReport | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the exchanges of all files in their order, one at a time; ``-`` is standard input.

    A line that is none goes to ``bad``; empty lines are skipped. An exchange
    without an ``id`` gets ``file:line``. NaN and lone surrogates, which JSON
    does not have, are read all the same: servers send them.

    Raises:
        UsageError: a file can't be read.
    """
    for path in paths:
        name = "stdin" if path == STDIN else str(path)
        try:
            with nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb") as lines:
                yield from _records(_told(lines, path, progress), name, bad)
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=name) from error


def _told(lines: BinaryIO, path: Path, progress: ProgressReport | None) -> Iterator[bytes]:
    size = path.stat().st_size if path != STDIN else 0
    if progress is None or not size:
        yield from lines
        return
    progress.begin(path.name, size)
    pending = 0
    for line in lines:
        pending += len(line)
        if pending >= _STEP:
            progress.advance(path.name, pending)
            pending = 0
        yield line
    progress.advance(path.name, pending)


def _records(lines: Iterable[bytes], name: str, bad: BadLines) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        record, why = _read(line)
        if record is None:
            bad.add(where, why)
            continue
        record["id"] = _printable(record.get("id"), where)
        yield record


def _read(line: bytes) -> tuple[dict[str, Any] | None, str]:
    """Return the exchange of a line, or why it is none."""
    record, failure = parse_json(line)
    if record is None and failure is not None:
        return None, f"no JSON: {failure.message}"
    why = _why_none(record)
    return (None, why) if why else (record, "")


def _printable(identity: object, where: str) -> str | int | float:
    """Return an ``id`` as it was given, so that lines can be joined by it; what is no name becomes one."""
    if isinstance(identity, str):
        return identity.encode("utf-8", "replace").decode()
    return identity if isinstance(identity, int | float) else where


def _why_none(record: object) -> str:
    """Return why a JSON value is no exchange; empty where it is one."""
    if not isinstance(record, dict):
        return f"no object. {_FORMAT}"
    if not isinstance(record.get("request"), dict):
        if {"messages", "prompt", "input"} & record.keys():
            return (
                "a request without an answer: that is what a probe sends. "
                'Name the file as toolcall_suite in [parts], and record with "ringtrue probe --record"'
            )
        return f"there is no request. {_FORMAT}"
    if not {"response", "chunks", "raw", "error"} & record.keys():
        return f"there is neither response nor chunks. {_FORMAT}"
    return "" if isinstance(record.get("chunks", []), list) else f"chunks is no list. {_FORMAT}"
