from hypothesis import given
from hypothesis import strategies as st

from tokenizer_checks.comparison import Kind, compare

EXPECTED = list(range(100, 140))


def test_the_same_ids_are_equal() -> None:
    comparison = compare(EXPECTED, EXPECTED, None)

    assert comparison.kind is Kind.EQUAL
    assert comparison.same is True


def test_ids_go_before_counts() -> None:
    assert compare(EXPECTED, [*EXPECTED[1:], 1], len(EXPECTED)).same is False


def test_a_doubled_first_token_is_different_and_found_at_the_start() -> None:
    comparison = compare(EXPECTED, [EXPECTED[0], *EXPECTED], None)

    assert (comparison.kind, comparison.first) == (Kind.DIFFERENT, 1)


def test_a_missing_run_is_a_cut_with_its_place() -> None:
    comparison = compare(EXPECTED, EXPECTED[:3] + EXPECTED[30:], None)

    assert (comparison.kind, comparison.cut) == (Kind.CUT, (3, 27))


@given(st.lists(st.integers(0, 3), min_size=1), st.data())
def test_every_contiguous_cut_is_recognised_also_among_repeats(ids: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(ids) - 1))
    stop = data.draw(st.integers(start + 1, len(ids)))
    used = ids[:start] + ids[stop:]

    comparison = compare(ids, used, None)

    assert comparison.kind is Kind.CUT
    assert comparison.cut is not None
    at, length = comparison.cut
    assert ids[:at] + ids[at + length :] == used


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_what_is_called_a_cut_is_one(expected: list[int], used: list[int]) -> None:
    comparison = compare(expected, used, None)

    assert (comparison.kind is Kind.EQUAL) == (expected == used)
    if comparison.kind is Kind.CUT:
        assert comparison.cut is not None
        at, length = comparison.cut
        assert expected[:at] + expected[at + length :] == used


def test_two_cuts_are_no_cut() -> None:
    assert compare(EXPECTED, EXPECTED[:5] + EXPECTED[8:20] + EXPECTED[25:], None).kind is Kind.DIFFERENT


def test_evidence_holds_at_most_64_ids() -> None:
    long = list(range(1000))
    comparison = compare(long, [*long[:500], 7, *long[501:]], None)

    assert len(comparison.expected_window) + len(comparison.used_window) <= 64
    assert 500 in comparison.expected_window
    assert 7 in comparison.used_window


def test_counts_are_consistent_or_not_and_never_equal() -> None:
    assert compare(EXPECTED, None, 40).kind is Kind.SAME_COUNT
    assert compare(EXPECTED, None, 41).kind is Kind.OTHER_COUNT


def test_without_ids_and_counts_nothing_is_known() -> None:
    comparison = compare(EXPECTED, None, None)

    assert comparison.kind is Kind.UNSEEN
    assert comparison.same is None


def test_a_template_fault_keeps_the_shared_tokens_and_another_vocabulary_does_not() -> None:
    template = compare(EXPECTED, [1, 2, *EXPECTED[5:]], None)
    foreign = compare(EXPECTED, [i * 7 for i in EXPECTED], None)

    assert template.shared is not None
    assert template.shared > 0.8
    assert foreign.shared is not None
    assert foreign.shared < 0.3
