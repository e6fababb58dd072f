import pytest

from tests.unit.tokenizer_checks.small_vocabulary import MARKERS, SmallTokenizer
from tokenizer_checks.metamorphic import (
    Relation,
    added_tokens_whole,
    count_is_length,
    generation_prompt_there,
    key_order_kept,
    literal_escaped,
    literal_escaped_by_count,
    prefix_kept,
    round_trip,
    routes_agree,
    terminator_stops,
    tools_used,
    unchanged,
    white_space_kept,
)


@pytest.mark.parametrize(
    "relation",
    [
        prefix_kept(None, [1]),
        added_tokens_whole({}, {"<s>": 1}),
        literal_escaped_by_count(None, 3, 4),
        white_space_kept(None, [1]),
        white_space_kept(5, 5),
        tools_used([1], None),
        key_order_kept(None, None),
        generation_prompt_there(None, 4),
        terminator_stops([None], frozenset({1})),
        round_trip("a", None),
        count_is_length(None, 4),
        routes_agree({"chat": [1]}),
        unchanged(None, [1]),
    ],
    ids=lambda relation: relation.name,
)
def test_what_was_not_shown_is_not_told(relation: Relation) -> None:
    assert relation.kept is None
    assert relation.sentence


def test_a_longer_conversation_keeps_the_ids_of_the_shorter() -> None:
    assert prefix_kept([1, 2, 3], [1, 2, 3, 4]).kept is True


def test_a_later_turn_that_changes_earlier_ones_is_found_where_it_does() -> None:
    told = prefix_kept([1, 2, 3], [1, 9, 3, 4])

    assert (told.kept, told.at) == (False, 1)


def test_added_tokens_are_whole_where_the_tokenizer_knows_them(small: SmallTokenizer) -> None:
    own = {marker: small.ids(marker)[0] for marker in MARKERS}

    assert added_tokens_whole({m: small.ids(m) for m in MARKERS}, own).kept is True
    assert added_tokens_whole({m: small.ids("<s>" + m) for m in MARKERS}, own).kept is True
    told = added_tokens_whole(
        {**{m: small.ids(m) for m in MARKERS}, "<think>": small.unmarked("<think>")}, own
    )
    assert told.kept is False
    assert told.sentence.endswith(": <think>")


def test_a_marker_in_user_text_is_parsed_or_escaped(small: SmallTokenizer) -> None:
    plain = small.ids("<|user|>Say .")

    assert literal_escaped(plain, small.ids("<|user|>Say <|system|>."), small.vocabulary).kept is False
    escaped = small.ids("<|user|>") + small.unmarked("Say <|system|>.")
    assert literal_escaped(plain, escaped, small.vocabulary).kept is True


@pytest.mark.parametrize(
    ("literal", "as_text", "kept"), [(11, 6, False), (16, 6, True), (13, 6, None), (11, 1, None)]
)
def test_a_count_tells_a_parsed_marker_where_it_can(literal: int, as_text: int, kept: bool | None) -> None:
    assert literal_escaped_by_count(10, literal, as_text).kept is kept


def test_white_space_that_is_lost_leaves_the_ids_equal() -> None:
    assert white_space_kept([1, 2], [1, 2]).kept is False
    assert white_space_kept([1, 2], [1, 3, 2]).kept is True
    assert white_space_kept(2, 3).kept is True


def test_tools_that_change_nothing_are_ignored() -> None:
    assert tools_used([1, 2], [1, 2]).kept is False
    assert tools_used(40, 40).kept is False
    assert tools_used(40, 140).kept is True
    assert tools_used([1, 2], [3, 1, 2]).kept is True


def test_sorted_keys_give_one_prompt_for_two_orders() -> None:
    assert key_order_kept([1, 2], [1, 2]).kept is False
    assert key_order_kept([1, 2], [2, 1]).kept is True


def test_a_generation_prompt_adds_and_changes_nothing() -> None:
    assert generation_prompt_there([1, 2], [1, 2, 7, 8]).kept is True
    assert generation_prompt_there([1, 2], [1, 2]).kept is False
    assert generation_prompt_there([1, 2], [1, 9, 2]).kept is False
    assert generation_prompt_there(2, 4).kept is True
    assert generation_prompt_there(4, 2).kept is False


def test_an_end_that_is_no_stop_is_named() -> None:
    assert terminator_stops([5, 5, None], frozenset({5, 6})).kept is True
    told = terminator_stops([5, 7], frozenset({5}))
    assert told.kept is False
    assert "7" in told.sentence


def test_text_that_comes_back_changed_says_where() -> None:
    assert round_trip("naïve", "naïve").kept is True
    told = round_trip("a😀b", "a\ufffdb")
    assert (told.kept, told.at) == (False, 1)
    assert "bytes were replaced" in told.sentence
    assert round_trip("ab ", "ab").at == 2


def test_counts_and_ids_agree_or_not() -> None:
    assert count_is_length([1, 2], 2).kept is True
    assert count_is_length([1, 2], 3).kept is False


def test_a_route_with_one_bos_more_is_named() -> None:
    assert routes_agree({"chat": [1, 2], "responses": [1, 2]}).kept is True
    told = routes_agree({"chat": [1, 2], "completions": [1, 1, 2]})
    assert (told.kept, told.at) == (False, 1)
    assert "completions differs from chat" in told.sentence


def test_ids_that_change_over_time_are_a_change() -> None:
    assert unchanged([1, 2], [1, 2]).kept is True
    assert unchanged([1, 2], [1, 3]).at == 1
