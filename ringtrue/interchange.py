"""Exchanges as lines of JSON: what ``ringtrue probe --record`` writes and the offline commands read.

One object a line: ``{"id", "request", "response"}`` for a plain answer,
``{"id", "request", "chunks", "done"}`` for a stream, where ``request`` and
``chunks`` are the bodies as the OpenAI API spells them. A body that is not JSON
is kept as text under ``raw``. Beside them, all optional: ``endpoint``, ``at``,
``timings`` (seconds of one clock; ``chunks`` in it are the times of the
chunks), ``headers``, ``error``, ``attempts``.

Recordings hold prompts and answers. They never hold an Authorization header or
a key: requests are written without headers, and what was received is masked
before it becomes an exchange.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from ringtrue.errors import StoreError, UsageError
from ringtrue.payload import from_body, to_body
from ringtrue.records import Attempt, Exchange, Failure, FailureKind, Party, Timings, WireChunk
from ringtrue.wire import Event, SSEDecoder, assemble_body, assemble_stream

_TIMES = tuple(field.name for field in dataclasses.fields(Timings))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_record(exchange: Exchange) -> dict[str, Any]:
    """One exchange as the object of its line."""
    record: dict[str, Any] = {
        "id": exchange.id,
        "request": _request_body(exchange),
        **_answer(exchange),
        "endpoint": exchange.endpoint,
        "at": exchange.at,
        "headers": dict(exchange.headers),
        "error": exchange.error,
        "attempts": exchange.attempts,
    }
    record.setdefault("timings", {}).update(
        (name, value) for name in _TIMES if (value := getattr(exchange.timings, name)) is not None
    )
    return record


def from_record(record: object) -> Exchange:
    """Read one object back; the answer is assembled anew from its body.

    Raises:
        ValueError, TypeError, KeyError: it is not in this format; the message says why.
    """
    if not isinstance(record, dict) or not isinstance(body := record.get("request"), dict):
        raise TypeError("no object, or its request is none")
    if not {"response", "chunks", "raw", "error"} & record.keys():
        raise ValueError("there is neither response nor chunks")
    request = from_body(str(record.get("id", "")), body)
    times = record.get("timings") or {}
    wire = _wire(record, times)
    if "chunks" in record:
        decoder = SSEDecoder()
        events: list[Event] = [event for chunk in wire for event in decoder.feed(chunk.data)]
        answer = assemble_stream(events + decoder.close(), echo=request.echo)
    else:
        answer = assemble_body(b"".join(chunk.data for chunk in wire), echo=request.echo)
    parts = {
        field.name: getattr(answer, field.name)
        for field in dataclasses.fields(answer)
        if field.name not in {"done", "content_events", "failure"}
    }
    return Exchange(
        id=request.id,
        endpoint=str(record.get("endpoint", "")),
        request=request,
        at=datetime.fromisoformat(record["at"]) if "at" in record else _EPOCH,
        timings=Timings(**{"scheduled": 0.0} | {name: times[name] for name in _TIMES if name in times}),
        wire=wire,
        requested_model=body.get("model"),
        headers=record.get("headers") or {},
        error=_failure(record["error"]) if "error" in record else answer.failure,
        attempts=tuple(
            Attempt(**item | {"failure": _failure(item["failure"])}) for item in record.get("attempts") or ()
        ),
        **parts,
    )


class ExchangeWriter:
    """Appends exchanges to a file, a line each; the file is on disk when ``close`` returns.

    Raises:
        StoreError: the file cannot be opened or written. Lines written before stay.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            # A recording holds prompts and answers: nobody else's business.
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")
        except OSError as error:
            raise self._refused(error) from error

    def write(self, exchange: Exchange) -> None:
        """Append one exchange."""
        line = orjson.dumps(to_record(exchange), option=orjson.OPT_APPEND_NEWLINE)
        try:
            self._file.write(line)
        except OSError as error:
            raise self._refused(error) from error

    def close(self) -> None:
        """Write what is buffered, wait for the disk, and close."""
        if self._file.closed:
            return
        try:
            with self._file:
                self._file.flush()
                os.fsync(self._file.fileno())
        except OSError as error:
            raise self._refused(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _refused(self, error: OSError) -> StoreError:
        return StoreError(
            f"cannot record: {error.strerror}",
            where=str(self._path),
            remedy="Check the folder and its free space",
        )


def read_exchanges(path: Path) -> Iterator[Exchange]:
    """Read a recording, one exchange at a time; empty lines are skipped.

    Raises:
        UsageError: the file cannot be read, or a line is not in the format;
            ``where`` is ``file:line``.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _read_line(line, f"{path}:{number}")
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error


def _read_line(line: bytes, where: str) -> Exchange:
    try:
        return from_record(orjson.loads(line))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"not an exchange: {error}",
            where=where,
            remedy='A line is {"id", "request", "response"} or {"id", "request", "chunks", "done"}',
        ) from error


def _request_body(exchange: Exchange) -> dict[str, Any]:
    request = exchange.request
    own = {"return_token_ids": request.return_token_ids or None, "prompt_logprobs": request.prompt_logprobs}
    return to_body(request, exchange.requested_model or "") | {
        name: value for name, value in own.items() if value is not None
    }


def _answer(exchange: Exchange) -> dict[str, Any]:
    """The body as ``response``, as ``chunks`` with their times, or as ``raw`` text when it is no JSON."""
    body = b"".join(chunk.data for chunk in exchange.wire)
    if not body:
        return {}
    try:
        if exchange.request.stream and not body.lstrip().startswith((b"{", b"[", b"<")):
            return _chunks(exchange.wire)
        return {"response": orjson.loads(body)}
    except orjson.JSONDecodeError:
        return {"raw": body.decode("utf-8", "replace")}


def _chunks(wire: tuple[WireChunk, ...]) -> dict[str, Any]:
    decoder = SSEDecoder()
    timed = [(chunk.at, event.data) for chunk in wire for event in decoder.feed(chunk.data)]
    timed += [(wire[-1].at, event.data) for event in decoder.close()]
    kept = [(at, orjson.loads(data)) for at, data in timed if data.strip() != "[DONE]"]
    return {
        "chunks": [value for _, value in kept],
        "done": len(kept) < len(timed),
        "timings": {"chunks": [at for at, _ in kept]},
    }


def _wire(record: Mapping[str, Any], times: Mapping[str, Any]) -> tuple[WireChunk, ...]:
    """The bytes of a recorded answer; a stream's are the parsed deltas, serialised again."""
    end = times.get("end") or 0.0
    if "raw" in record:
        return (WireChunk(end, str(record["raw"]).encode()),)
    if "response" in record:
        return (WireChunk(end, orjson.dumps(record["response"])),)
    chunks = record.get("chunks", ())
    at = times.get("chunks") or [end] * len(chunks)
    wire = [
        WireChunk(time, b"data: " + orjson.dumps(chunk) + b"\n\n")
        for time, chunk in zip(at, chunks, strict=True)
    ]
    return (*wire, WireChunk(end, b"data: [DONE]\n\n")) if record.get("done") else tuple(wire)


def _failure(value: Mapping[str, Any] | None) -> Failure | None:
    if value is None:
        return None
    fields = dict(value)
    return Failure(FailureKind(fields.pop("kind")), party=Party(fields.pop("party")), **fields)
