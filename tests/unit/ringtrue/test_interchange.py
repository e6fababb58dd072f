from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ringtrue.errors import StoreError, UsageError
from ringtrue.interchange import ExchangeWriter, from_record, read_exchanges, to_record
from ringtrue.records import (
    Attempt,
    Exchange,
    Failure,
    FailureKind,
    Party,
    Request,
    Sampling,
    Timings,
    Usage,
    WireChunk,
)

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
REQUEST = Request(
    id="q1",
    messages=({"role": "user", "content": "hi"},),
    sampling=Sampling(max_tokens=2),
    logprobs=1,
    return_token_ids=True,
    prompt_logprobs=2,
)
PLAIN = {
    "model": "m-1",
    "choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop", "token_ids": [5]}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}
CHUNKS = [
    {"choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]},
]
REFUSED = Failure(FailureKind.RATE_LIMITED, "slow down", Party.PROVIDER, 429, 7.0)


def plain() -> Exchange:
    body = json.dumps(PLAIN, separators=(",", ":")).encode()
    return Exchange(
        id="q1",
        endpoint="ep",
        request=REQUEST,
        requested_model="m",
        at=AT,
        timings=Timings(1.0, 1.5, 2.0, 2.5, 2.5, 2.5),
        wire=(WireChunk(2.5, body),),
        text="Hello",
        finish_reason="stop",
        usage=Usage(3, 1, 4),
        token_ids=(5,),
        model="m-1",
        headers={"x-request-id": "r"},
        attempts=(Attempt(1, 1.2, REFUSED, 0.3), Attempt(2, 1.5, None)),
    )


def streamed() -> Exchange:
    request = Request(id="q2", messages=REQUEST.messages, sampling=Sampling(max_tokens=2), stream=True)
    events = [b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n" for chunk in CHUNKS]
    return Exchange(
        id="q2",
        endpoint="ep",
        request=request,
        requested_model="m",
        at=AT,
        timings=Timings(1.0, 1.0, 2.0, 2.0, 3.0, 3.5),
        wire=(WireChunk(2.0, events[0]), WireChunk(3.0, events[1]), WireChunk(3.5, b"data: [DONE]\n\n")),
        text="Hello",
        finish_reason="stop",
    )


@pytest.mark.parametrize("exchange", [plain(), streamed()], ids=["plain", "streamed"])
def test_an_exchange_survives_its_recording(exchange: Exchange, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ExchangeWriter(path) as writer:
        writer.write(exchange)
    assert list(read_exchanges(path)) == [exchange]


def test_the_line_has_the_shape_that_other_tools_read() -> None:
    record = to_record(plain())
    assert (record["id"], record["response"]) == ("q1", PLAIN)
    assert record["request"]["model"] == "m"
    assert record["request"]["top_logprobs"] == 1
    record = to_record(streamed())
    assert (record["chunks"], record["done"]) == (CHUNKS, True)
    assert record["timings"]["chunks"] == [2.0, 3.0]


def test_a_truncated_stream_is_recorded_without_done_and_reads_back_as_truncated() -> None:
    exchange = streamed()
    record = to_record(exchange.__class__(**{**_fields(exchange), "wire": exchange.wire[:1]}))
    assert (record["chunks"], record["done"]) == (CHUNKS[:1], False)
    del record["error"], record["at"]
    again = from_record(record)
    assert again.error is not None
    assert again.error.kind is FailureKind.TRUNCATED
    assert again.text == "Hel"


@pytest.mark.parametrize("body", [b"<html>busy</html>", b'{"cut": ', b"data: {oops\n\n"])
def test_a_body_that_is_no_json_is_kept_as_text(body: bytes, tmp_path: Path) -> None:
    error = Failure(FailureKind.HTML, "a web page", Party.PROVIDER, 502)
    exchange = Exchange(**{**_fields(streamed()), "wire": (WireChunk(3.5, body),), "error": error})
    with ExchangeWriter(tmp_path / "run.jsonl") as writer:
        writer.write(exchange)
    (again,) = read_exchanges(tmp_path / "run.jsonl")
    assert again.wire == exchange.wire
    assert again.error == error


def test_a_request_that_was_never_answered_is_recorded_with_its_reason(tmp_path: Path) -> None:
    unsent = Exchange(id="q1", endpoint="ep", request=REQUEST, at=AT, timings=Timings(1.0), error=REFUSED)
    with ExchangeWriter(tmp_path / "run.jsonl") as writer:
        writer.write(unsent)
    (again,) = read_exchanges(tmp_path / "run.jsonl")
    assert (again.error, again.timings) == (REFUSED, Timings(1.0))


def test_a_minimal_record_is_enough() -> None:
    exchange = from_record({"id": "x", "request": {"model": "m", "messages": []}, "response": PLAIN})
    assert (exchange.text, exchange.usage, exchange.error) == ("Hello", Usage(3, 1, 4), None)


def test_recording_appends_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for exchange in (plain(), streamed()):
        with ExchangeWriter(path) as writer:
            writer.write(exchange)
    assert [exchange.id for exchange in read_exchanges(path)] == ["q1", "q2"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{oops", "not an exchange"),
        ("[]", "no object"),
        ('{"id": "x"}', "its request is none"),
        ('{"request": {"model": "m"}}', "neither response nor chunks"),
        ('{"request": {}, "response": {}, "at": "yesterday"}', "yesterday"),
        ('{"request": {}, "response": {}, "error": {"kind": "new", "party": "caller"}}', "new"),
        ('{"request": {}, "chunks": [1], "timings": {"chunks": [1.0, 2.0]}}', "not an exchange"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    good = '{"id": "a", "request": {"messages": []}, "response": {"choices": []}}'
    path.write_text(f"{good}\n\n{line}\n")
    exchanges = read_exchanges(path)
    assert next(exchanges).id == "a"
    with pytest.raises(UsageError, match=reason) as caught:
        next(exchanges)
    assert caught.value.where == f"{path}:3"


def test_a_file_that_is_not_there_or_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        next(read_exchanges(tmp_path / "missing.jsonl"))
    with pytest.raises(StoreError, match="cannot record: Is a directory"):
        ExchangeWriter(tmp_path)


def test_a_full_disk_is_a_store_error() -> None:
    with (
        pytest.raises(StoreError, match=r"/dev/full: cannot record: No space left"),
        ExchangeWriter(Path("/dev/full")) as writer,
    ):
        writer.write(plain())


def _fields(exchange: Exchange) -> dict[str, object]:
    return {name: getattr(exchange, name) for name in exchange.__dataclass_fields__}
