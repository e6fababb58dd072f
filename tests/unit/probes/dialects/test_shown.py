"""Lists of token IDs are taken as they stand, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.dialects import shown
from probes.dialects.shown import Found, judge, read_ids

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "the answer holds no token IDs"),
        ("[1, 2]", "text where a list of token IDs was due"),
        ({"ids": [1]}, "an object where a list"),
        (7, "a number where a list"),
        (True, "a boolean where a list"),
        ([], "0 token IDs are no prompt"),
        ([1, "token_id:60"], "text where a token ID was due, at index 1"),
        (["60"], "text where a token ID was due, at index 0"),
        ([1, 2.0], "a fractional number where a token ID was due, at index 1"),
        ([1, True], "a boolean where a token ID was due, at index 1"),
        ([1, None], "null where a token ID was due, at index 1"),
        ([[1, 2], [3]], "a list where a token ID was due, at index 0"),
        ([{"id": 1}], "an object where a token ID was due, at index 0"),
        ([4, -1], "-1 at index 1 is no token ID: they go from 0 to 2,147,483,647"),
        ([1 << 31], "2147483648 at index 0 is no token ID"),
    ],
)
def test_what_is_no_list_of_ids_says_what_it_is(value: Any, said: str) -> None:
    ids, problem = read_ids(value)
    assert ids is None
    assert problem is not None
    assert said in problem


def test_an_id_outside_of_the_vocabulary_is_none() -> None:
    assert read_ids([0, 99], vocabulary_size=100) == ((0, 99), None)
    ids, problem = read_ids([0, 100], vocabulary_size=100)
    assert (ids, problem) == (None, "100 at index 1 is no token ID: they go from 0 to 99")


def test_a_list_longer_than_any_context_is_no_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "MOST_IDS", 3)
    assert read_ids([1, 2, 3]) == ((1, 2, 3), None)
    assert read_ids([1, 2, 3, 4])[1] == "4 token IDs are no prompt: there are 1 to 3"


def test_the_problem_does_not_repeat_text() -> None:
    assert "secret" not in str(read_ids(["secret"])) + str(read_ids("secret"))


@given(ANY_JSON)
def test_what_is_read_is_what_stood_there_and_anything_else_has_a_problem(value: Any) -> None:
    ids, problem = read_ids(value)
    assert (ids is None) is (problem is not None)
    if ids is not None:
        assert list(ids) == value
        assert all(type(item) is int and 0 <= item < 1 << 31 for item in ids)


@given(st.lists(st.integers(0, (1 << 31) - 1), min_size=1))
def test_every_list_of_whole_numbers_in_range_is_read(value: list[int]) -> None:
    assert read_ids(value) == (tuple(value), None)


@pytest.mark.parametrize("count", ["3", 3.0, True, -1, [3]])
def test_a_count_is_not_cast_and_the_ids_beside_it_stay(count: Any) -> None:
    one = judge("chat", Found([1, 2, 3], count), used=True, vocabulary_size=None)
    assert (one.ids, one.count) == ((1, 2, 3), None)
    assert one.problem == "the count of prompt tokens is no whole number from 0 on"


def test_the_reader_s_own_problem_takes_the_ids_away() -> None:
    one = judge("chat", Found([1], 1, problem="two lists"), used=True, vocabulary_size=None)
    assert (one.ids, one.count, one.problem) == (None, 1, "two lists")
