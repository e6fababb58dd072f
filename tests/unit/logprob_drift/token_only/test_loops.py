import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.token_only.loops import FLOOD_NEEDS, LOOP_NEEDS, floods, loops


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!" * 50, True),
        ("Here it is: " + "and so on " * 30, True),
        ("!" * 20, False),
        ("", False),
        ("A plain answer of some sentences, none of which comes twice, and which then ends.", False),
        (
            "ab" * 100 + " but then it found an end, as answers do when nothing at all is wrong with them, "
            "and it went on for quite a while after that, so that the repetition is not what it ends with.",
            False,
        ),
    ],
)
def test_a_loop_is_one_piece_repeated_to_the_end(text: str, expected: bool) -> None:
    assert loops(text) is expected


def test_a_flood_is_a_loop_of_one_sign() -> None:
    assert floods("The answer is " + "!" * 60)
    assert not floods("and so on " * 30)
    assert not floods("- one\n- two\n" + "-" * 10)


def test_a_flood_of_a_token_of_several_letters_or_of_none_shows_in_the_ids() -> None:
    again = " the" * 40

    assert not floods(again)
    assert floods(again, [5, 9] + [7] * 40)
    assert floods(" \n" * 30, [3] * 30)
    assert not floods("", [3] * (FLOOD_NEEDS - 1))
    assert not floods("fine", [1, 2] * 40)


@given(st.text(min_size=1, max_size=12).filter(lambda piece: piece.strip() == piece), st.text(max_size=30))
def test_whatever_is_repeated_long_enough_is_a_loop_however_the_answer_began(piece: str, begin: str) -> None:
    text = begin + piece * (2 * LOOP_NEEDS)

    assert loops(text)
    assert floods(text) is (len(set(piece)) == 1)


@given(st.lists(st.integers(0, 3), max_size=60))
def test_only_a_run_to_the_end_is_a_flood_of_tokens(ids: list[int]) -> None:
    run = next((at for at, token in enumerate(reversed(ids)) if token != ids[-1]), len(ids))
    least = max(FLOOD_NEEDS, len(ids) // 2)

    assert floods("", ids) is (run >= least)
