"""Reads recordings line by line; of each batch only its numbers stay in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np

from evals.replay.batches import Batch, EndpointSeries
from evals.replay.line import BadLineError, Line, Names, parse_line
from ringtrue.errors import MeasureError, UsageError
from ringtrue.progress import ProgressReport

BACKWARDS = 60.0  # seconds; answers in flight together may be written in any order
OPEN_AT_MOST = 20_000  # lines of one batch that are held at once
_DIGEST = 8  # bytes that stand for a line
_STEP = 1 << 20  # bytes between two reports of progress


@dataclass(slots=True)
class Recording:
    """What was read: the series of each endpoint, and the lines that were left out."""

    endpoints: dict[str, EndpointSeries] = field(default_factory=dict)
    lines: int = 0
    bad: int = 0
    repeated: int = 0
    backwards: Counter[str] = field(default_factory=Counter)  # by endpoint: times at which t ran back


@dataclass(slots=True)
class _Open:
    """The batch of an endpoint that is being read."""

    key: str
    lines: list[Line] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)


def read_recording(paths: Sequence[Path], progress: ProgressReport, rng: np.random.Generator) -> Recording:
    """Read files of one JSON object a line.

    A bad line is named and left out. Of lines that are equal byte for byte in
    one batch the first counts, unless all lines of the batch share one ``t``,
    which is then the batch's and not each request's own. ``rng`` chooses the
    texts that are kept where a batch has many.

    Raises:
        UsageError: a file can't be read.
        MeasureError: no line of any file can be used.
    """
    found = Recording()
    reader = _Reader(found, rng)
    for path in dict.fromkeys(path.resolve() for path in paths):
        for where, raw in _lines(path, progress):
            try:
                line = parse_line(raw, reader.names)
            except BadLineError as error:
                found.bad += 1
                progress.say(f"{where}: left out: {error}")
            else:
                found.lines += 1
                reader.take(line, raw)
        reader.close()
    if not found.endpoints:
        raise MeasureError(
            f"no line can be used; {found.bad} are bad",
            where=", ".join(str(path) for path in paths),
            remedy='A line is {"endpoint", "t", "batch", "prompt"} with top_logprobs, text or value',
        )
    return found


class _Reader:
    """Sorts lines into batches, and closes an endpoint's batch when its next one begins."""

    def __init__(self, into: Recording, rng: np.random.Generator) -> None:
        self.names = Names()
        self._into = into
        self._rng = rng
        self._latest: dict[tuple[str, str, str, str], float] = {}
        self._open: dict[str, _Open] = {}
        self._seen: dict[tuple[str, str], bytes] = {}

    def take(self, line: Line, raw: bytes) -> None:
        batch = self._open.get(line.endpoint)
        if batch is None or batch.key != line.batch or len(batch.lines) >= OPEN_AT_MOST:
            if batch is not None:
                self._reduce(line.endpoint, batch)
            batch = self._open[line.endpoint] = _Open(line.batch)
        # Kinds, metrics and prompts apart: they may stand one after the other in a file.
        asked = (line.endpoint, type(line.content).__name__, line.metric, line.prompt)
        if line.at < self._latest.get(asked, line.at) - BACKWARDS:
            self._into.backwards[line.endpoint] += 1
        self._latest[asked] = line.at
        batch.lines.append(line)
        batch.hashes.append(blake2b(raw.strip(), digest_size=_DIGEST).digest())

    def close(self) -> None:
        for endpoint, batch in self._open.items():
            self._reduce(endpoint, batch)
        self._open.clear()
        self._latest.clear()

    def _reduce(self, endpoint: str, opened: _Open) -> None:
        lines = self._once(endpoint, opened)
        if not lines:
            return
        series = self._into.endpoints.setdefault(endpoint, EndpointSeries(endpoint))
        batch = series.batches.setdefault(opened.key, Batch(opened.key, lines[0].at, lines[0].at))
        batch.take(lines, self._rng)

    def _once(self, endpoint: str, opened: _Open) -> list[Line]:
        if len({line.at for line in opened.lines}) == 1:
            return opened.lines
        packed = self._seen.get((endpoint, opened.key), b"")
        seen = {packed[at : at + _DIGEST] for at in range(0, len(packed), _DIGEST)}
        kept = []
        for line, digest in zip(opened.lines, opened.hashes, strict=True):
            if digest in seen:
                self._into.repeated += 1
            else:
                seen.add(digest)
                kept.append(line)
        self._seen[endpoint, opened.key] = b"".join(seen)
        return kept


def _lines(path: Path, progress: ProgressReport) -> Iterator[tuple[str, bytes]]:
    try:
        size = path.stat().st_size
        if size:
            progress.begin(path.name, size)
        with path.open("rb") as file:
            pending = 0
            for number, raw in enumerate(file, start=1):
                pending += len(raw)
                if size and pending >= _STEP:
                    progress.advance(path.name, pending)
                    pending = 0
                if raw.strip():
                    yield f"{path}:{number}", raw
            if size and pending:
                progress.advance(path.name, pending)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
