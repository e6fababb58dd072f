from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.wire import Event, SSEDecoder


def decode(*pieces: bytes) -> list[Event]:
    decoder = SSEDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.close()


def cut(data: bytes, at: Sequence[int]) -> list[bytes]:
    borders = [0, *sorted(at), len(data)]
    return [data[start:end] for start, end in pairwise(borders)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_line_ending_of_the_standard_ends_lines(end: str) -> None:
    stream = end.join(["event: ping", "data: a", "", "data: b", "data: c", "", ""]).encode()
    assert decode(stream) == [Event("a", "ping"), Event("b\nc")]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
        (b": keep-alive\n\ndata: a\n\n", [Event("a")]),
        (b"data:no space\n\n", [Event("no space")]),
        (b"data:  two spaces\n\n", [Event(" two spaces")]),
        (b"data\n\n", [Event("")]),
        (b"id: 1\nretry: 5\nunknown: x\ndata: a\n\n", [Event("a")]),
        (b"event: nothing\n\ndata: a\n\n", [Event("a")]),
        (b"data: [DONE]", [Event("[DONE]")]),
        (b"data: a\n\ndata: cut", [Event("a"), Event("cut")]),
        (b"data: \xff\n\n", [Event("\ufffd")]),
        (b"", []),
        (b"\xef\xbb", []),
    ],
)
def test_the_details_of_the_standard_hold(stream: bytes, events: list[Event]) -> None:
    assert decode(stream) == events


@given(
    st.lists(
        st.sampled_from(
            [
                b"data: ",
                "学🦆é".encode(),
                b"\r",
                b"\n",
                b"\r\n",
                b":",
                b"event: x",
                b"a",
                b"\xef\xbb\xbf",
                b"\xff",
            ]
        ),
        max_size=30,
    ).map(b"".join),
    st.data(),
)
def test_the_events_do_not_depend_on_how_the_bytes_were_split(stream: bytes, data: st.DataObject) -> None:
    at = data.draw(st.lists(st.integers(0, len(stream)), max_size=12))
    assert decode(*cut(stream, at)) == decode(stream)


@given(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), st.data())
def test_characters_survive_every_split(text: str, data: st.DataObject) -> None:
    stream = b"data: " + text.encode() + b"\n\n"
    at = data.draw(st.lists(st.integers(0, len(stream)), max_size=5))
    assert decode(*cut(stream, at)) == [Event(text)]
