from __future__ import annotations

import random
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.toolcall_validator.test_cases import SAMPLES
from toolcall_validator.fault import CODES
from toolcall_validator.rules.args import unreadable
from toolcall_validator.strict_json import Flaw, parse_strict
from toolcall_validator.validate import Validator, chunks_of

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(
        [
            "<tool_call>",
            "{",
            '{"place": ',
            "\ud800",
            "auto",
            "tool_use",
            "stop",
            "<|tool_call_begin|>",
            "```",
            "\\u",
        ]
    )
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


@settings(deadline=None)
@given(st.sampled_from(SAMPLES), st.randoms(use_true_random=False), st.lists(VALUES, min_size=1, max_size=3))
def test_a_record_with_anything_anywhere_is_judged(
    sample: Any, rng: random.Random, values: list[Any]
) -> None:
    record: Any = sample.record
    for value in values:
        record = put(record, rng.choice(places(record)), value)
    found = Validator().validate(record)
    ranks = [CODES.index(fault.code) for fault in found]
    assert ranks == sorted(ranks)
    for fault in found:
        orjson.dumps(fault.as_dict())


@settings(deadline=None)
@given(VALUES)
def test_anything_at_all_is_judged(value: Any) -> None:
    Validator().validate(value)
    Validator().validate({"request": value, "response": value})
    Validator().validate({"request": value, "chunks": [value, {"choices": [{"delta": value}]}]})


@settings(deadline=None)
@given(st.binary() | st.text().map(lambda text: b"data: " + text.encode("utf-8", "replace") + b"\n\n"))
def test_any_bytes_are_judged(wire: bytes) -> None:
    Validator().validate_stream({}, [wire])
    chunks_of([wire])


@settings(deadline=None)
@given(st.text() | st.text(alphabet='{}[]":,\\utrfn1e-.N '))
def test_any_text_is_strict_json_or_has_a_code(text: str) -> None:
    parsed = parse_strict(text)
    if parsed.flaw is Flaw.NOT_JSON:
        assert unreadable(text)[0] in CODES


@given(VALUES)
def test_what_a_json_writer_wrote_is_strict_json(value: Any) -> None:
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # a lone surrogate or an integer beyond 64 bits has no writer here
        return
    assert parse_strict(text).flaw is None
