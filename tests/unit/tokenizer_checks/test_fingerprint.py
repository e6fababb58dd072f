from hypothesis import given
from hypothesis import strategies as st

from tokenizer_checks.fingerprint import BITS, fingerprint
from tokenizer_checks.vocabulary import Vocabulary

WORDS = Vocabulary(lambda ids: bytes(ids).decode("latin-1"), size=256)


def of(text: str) -> int:
    return fingerprint(text.encode("latin-1"), WORDS)


@given(st.lists(st.integers(0, 255)))
def test_it_is_exact_as_a_float_and_the_same_for_the_same_ids(ids):
    value = fingerprint(ids, WORDS)
    assert 0 <= value < 2**BITS
    assert int(float(value)) == value == fingerprint(tuple(ids), WORDS)


def test_other_ids_have_another_one():
    assert len({of(text) for text in ("", "a", "b", "ab", "ba", "a b")}) == 6


def test_the_day_does_not_change_it_and_its_neighbours_do():
    assert of("Today is 31 Dec 2026.") == of("Today is 1 Jan 2027.")
    assert of("Today Date: 2026-12-31\n") == of("Today Date: 2027-01-01\n")
    assert of("Today is 31 Dec 2026.") != of("Today is 31 Dec 2026!")
    assert of("Today is 31 Dec 2026.") != of("Today is .")


def test_ids_that_the_vocabulary_lacks_count_too():
    assert fingerprint([1, 2, 70_000], WORDS) != fingerprint([1, 2, 70_001], WORDS)
