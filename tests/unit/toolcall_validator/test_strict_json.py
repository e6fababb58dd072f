from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcall_validator.strict_json import Flaw, parse_strict


def written(pairs: list[tuple[str, str, str]]) -> str:
    return "{" + ", ".join(f'"{key}"{colon}{value}' for key, colon, value in pairs) + "}"


KEYS = st.sampled_from(["a", "b:", "\\u003a", "\\u003A", "\\u0061", '\\"', ":", ""])
VALUES = st.recursive(
    st.sampled_from(["1", "null", '""', '":"', '"\\u003a"', '"a\\":"', "[]", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(KEYS, st.sampled_from([":", " : "]), inner), max_size=4).map(written)
    ),
    max_leaves=9,
)


@given(VALUES)
@example('{"a": 1, "a": "\\u003a"}')
@example('{"a": ":", "a": "::"}')
@example('{"a": {"b": 1}, "a": {"b": "::"}}')
def test_a_key_that_comes_twice_is_found_wherever_it_is_and_whatever_colons_there_are(text: str) -> None:
    twice = False

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        twice = twice or len({key for key, _ in found}) < len(found)
        return dict(found)

    value = json.loads(text, object_pairs_hook=pairs)
    parsed = parse_strict(text)
    assert parsed.value == value
    assert parsed.flaw is (Flaw.DUPLICATE_KEY if twice else None)


@pytest.mark.parametrize("depth", [200, 300, 900])
def test_depth_is_no_flaw_of_what_python_reads(depth: int) -> None:
    text = '{"a": ' * depth + "1" + "}" * depth
    parsed = parse_strict(text)
    assert parsed.flaw is None
    assert parsed.value == json.loads(text)
