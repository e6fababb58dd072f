"""Lines of a recording, good and bad."""

import json
import math
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.replay.line import BadLineError, Line, Names, Row, parse_line

GOOD = {"endpoint": "a", "t": 1_767_236_400, "value": 1.5}


def parsed(**fields: object) -> Line:
    given_fields = {name: value for name, value in (GOOD | fields).items() if value is not ...}
    return parse_line(json.dumps(given_fields).encode(), Names())


def test_times_may_be_seconds_or_iso_8601_and_are_utc_without_a_zone() -> None:
    expected = datetime(2026, 1, 1, 3, tzinfo=UTC).timestamp()

    for t in (
        expected,
        int(expected),
        "2026-01-01T03:00:00Z",
        "2026-01-01T04:00:00+01:00",
        "2026-01-01T03:00",
    ):
        assert parsed(t=t).at == expected


def test_without_a_batch_the_utc_day_is_one() -> None:
    assert parsed(t="2026-01-01T23:30:00-02:00").batch == "2026-01-02"
    assert parsed(batch="night 1").batch == "night 1"
    assert parsed(batch=7).batch == "7"


def test_rows_are_sorted_and_tokens_of_one_name_are_one_cell() -> None:
    line = parsed(value=..., top_logprobs=[["b", math.log(0.1)], ["a", math.log(0.5)], ["b", math.log(0.2)]])

    assert isinstance(line.content, Row)
    assert line.content.tokens == (1, 0)
    assert [math.exp(value) for value in line.content.logprobs] == pytest.approx([0.5, 0.3])


def test_sentinels_are_dropped_from_a_row() -> None:
    line = parsed(value=..., top_logprobs=[["a", -0.5], ["b", -9999.0]])

    assert isinstance(line.content, Row)
    assert line.content.tokens == (0,)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"endpoint": ...}, "endpoint must be a name"),
        ({"endpoint": ""}, "endpoint must be a name"),
        ({"t": ...}, "t must be"),
        ({"t": True}, "t must be"),
        ({"t": "yesterday"}, "t is no ISO 8601 time"),
        ({"t": 1_767_236_400_000}, "is it in seconds"),
        ({"batch": [1]}, "batch must be"),
        ({"value": 1e31}, "value has the wrong form"),
        ({"value": "1"}, "value has the wrong form"),
        ({"value": ...}, "exactly one of top_logprobs, text, value; there are 0"),
        ({"text": "x"}, "there are 2"),
        ({"metric": 3}, "metric must be a name"),
        ({"value": ..., "text": 3}, "text has the wrong form"),
        ({"value": ..., "top_logprobs": [["a"]]}, r"must be \[\[token, logprob\], ...\]"),
        ({"value": ..., "top_logprobs": []}, "cannot be used: empty"),
        ({"value": ..., "top_logprobs": [["a", 1.0]]}, "cannot be used: positive"),
        ({"value": ..., "top_logprobs": [["a", -0.1], ["b", -0.1]]}, "cannot be used: sum_above_one"),
        ({"value": ..., "top_logprobs": [["a", -9999.0]]}, "cannot be used: sentinel"),
    ],
)
def test_a_bad_line_says_what_is_wrong_with_it(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(BadLineError, match=reason):
        parsed(**fields)


@pytest.mark.parametrize("raw", [b"{", b"[]", b"7", b'{"endpoint": "a", "t": 0, "value": NaN}', b"\xff\xfe"])
def test_what_is_no_json_object_is_a_bad_line(raw: bytes) -> None:
    with pytest.raises(BadLineError, match="no JSON"):
        parse_line(raw, Names())


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["endpoint", "t", "batch", "prompt", "metric", "top_logprobs", "text", "value"]),
        _ANYTHING,
    )
)
def test_any_object_is_a_line_or_a_bad_line(fields: dict[str, object]) -> None:
    try:
        raw = orjson.dumps(fields)
    except (TypeError, ValueError):
        return
    try:
        line = parse_line(raw, Names())
    except BadLineError:
        return
    assert math.isfinite(line.at)
