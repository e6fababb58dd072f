from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer
from tokenizer_checks.difference import difference
from tokenizer_checks.side_by_side import (
    CONTEXT,
    as_html,
    as_table,
    as_text,
    html_page,
    printable,
    rows,
    visible,
)
from tokenizer_checks.vocabulary import Vocabulary

LETTERS = Vocabulary(lambda ids: "".join(chr(97 + i % 26) for i in ids))
IDS = st.lists(st.integers(0, 5), max_size=120)


@given(IDS, IDS)
def test_every_token_is_shown_or_counted_as_skipped(expected: list[int], used: list[int]) -> None:
    found = difference(expected, used, LETTERS)
    if found is None:
        return
    shown = list(rows(found, LETTERS))

    assert sum((row.expected is not None) + row.skipped[0] for row in shown) == len(expected)
    assert sum((row.used is not None) + row.skipped[1] for row in shown) == len(used)


@given(IDS, IDS)
def test_rows_that_did_not_change_hold_equal_tokens(expected: list[int], used: list[int]) -> None:
    found = difference(expected, used, LETTERS)
    if found is None:
        return
    for row in rows(found, LETTERS):
        if not row.changed and row.expected and row.used:
            assert expected[row.expected.index] == used[row.used.index] == row.expected.token_id


def test_the_columns_mark_what_is_missing_added_and_replaced(small: SmallTokenizer) -> None:
    expected = small.ids("<s><|im_start|>user\n")
    used = [*expected[:1], *expected]
    found = difference(expected, used, small.vocabulary)
    assert found is not None

    lines = as_text(found, small.vocabulary).splitlines()

    assert [line[0] for line in lines[1:4]] == [" ", "+", " "]
    assert lines[2].endswith("<s>")


def test_a_long_prompt_shows_the_places_alone() -> None:
    expected = list(range(10_000))
    found = difference(expected, [*expected[:5_000], -1, *expected[5_001:]], LETTERS)
    assert found is not None

    lines = as_text(found, LETTERS).splitlines()

    assert len(lines) == 1 + 2 + 2 * CONTEXT + 1
    assert f"… {5_000 - CONTEXT:,} tokens" in lines[1]


def test_nothing_of_a_token_reaches_the_terminal_as_a_control() -> None:
    assert visible("a b\x1b[31m\n\u202e") == "a·b\\u001b[31m⏎\\u202e"


def test_html_is_escaped_and_needs_nothing_else(small: SmallTokenizer) -> None:
    found = difference(small.ids("<s>a"), small.ids("<s>a<think>"), small.vocabulary)
    assert found is not None

    page = as_html(found, small.vocabulary, "a < b")

    assert "&lt;think&gt;" in page
    assert "<think>" not in page
    assert "<h1>a &lt; b</h1>" in page
    assert "http" not in page


def test_a_page_of_several_differences_holds_a_table_each(small: SmallTokenizer) -> None:
    found = difference(small.ids("<s>a"), small.ids("<s>a<think>"), small.vocabulary)
    assert found is not None
    table = as_table(found, small.vocabulary)

    page = html_page("two", table + table)

    assert page.count("<table>") == page.count("</table>") == 2
    assert as_html(found, small.vocabulary, "two") == html_page("two", table)


def test_a_line_for_the_terminal_keeps_its_spaces_and_nothing_else_that_acts() -> None:
    assert printable("a b\x1b[31m\nc\t·") == "a b\\u001b[31m⏎c⇥·"
