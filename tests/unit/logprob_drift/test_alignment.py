import math

import pytest

from logprob_drift.alignment import Aligned, Defect, align
from logprob_drift.vocabulary import Vocabulary
from ringtrue.records import Position, TokenLogprob

# 0 "a", 1 "b", 2 "c", 3 and 4 both "d", 5 a lone continuation byte
WORDS = [b"a", b"b", b"c", b"d", b"d", b"\x80"]
VOCABULARY = Vocabulary.build(len(WORDS), WORDS.__getitem__)


def entry(name: int | str | bytes, probability: float) -> TokenLogprob:
    logprob = math.log(probability)
    if isinstance(name, int):
        return TokenLogprob(f"token_id:{name}", logprob, token_id=name)
    if isinstance(name, bytes):
        return TokenLogprob("?", logprob, raw=name)
    return TokenLogprob(name, logprob)


def aligned(*top: TokenLogprob, sampled: TokenLogprob | None = None, asked: int = 5) -> Aligned:
    result = align(Position(sampled or top[0], top), VOCABULARY, asked=asked)
    assert isinstance(result, Aligned)
    return result


def defect(*top: TokenLogprob) -> Defect:
    result = align(Position(top[0] if top else entry(0, 1.0), top), VOCABULARY, asked=5)
    assert isinstance(result, Defect)
    return result


def test_cells_are_sorted_and_what_is_unseen_is_counted() -> None:
    row = aligned(entry(1, 0.2), entry(0, 0.5), sampled=entry(0, 0.5))

    assert row.cells == ((0,), (1,))
    assert row.unseen == pytest.approx(0.3)
    assert row.k == 2


def test_an_id_goes_before_bytes_and_bytes_before_the_string() -> None:
    lying = TokenLogprob("b", math.log(0.5), token_id=0, raw=b"c")
    by_bytes = TokenLogprob("a", math.log(0.2), raw=b"b")

    assert aligned(lying, by_bytes).cells == ((0,), (1,))


def test_a_string_of_two_tokens_is_one_cell_of_both() -> None:
    assert aligned(entry("d", 0.5), entry("a", 0.2)).cells == ((3, 4), (0,))


@pytest.mark.parametrize("name", ["", "�", "zzz", b"zz", 6, -1])
def test_an_entry_that_cannot_be_named_counts_as_unseen(name: int | str | bytes) -> None:
    row = aligned(entry("a", 0.5), entry(name, 0.3))

    assert row.cells == ((0,),)
    assert row.unseen == pytest.approx(0.5)
    assert row.dropped == (Defect.UNIDENTIFIED,)


def test_a_sampled_token_appended_at_the_end_is_dropped() -> None:
    sampled = entry(2, 0.001)

    assert aligned(entry(0, 0.5), entry(1, 0.3), sampled, sampled=sampled, asked=2).cells == ((0,), (1,))


def test_a_sampled_token_put_first_though_unlikely_is_dropped() -> None:
    sampled = entry(2, 0.001)

    assert aligned(sampled, entry(0, 0.5), entry(1, 0.3), sampled=sampled, asked=2).cells == ((0,), (1,))


def test_a_sampled_token_that_replaced_the_last_entry_is_dropped_too() -> None:
    sampled = entry(2, 0.001)

    assert aligned(entry(0, 0.5), sampled, sampled=sampled, asked=2).cells == ((0,),)


def test_a_sampled_token_among_the_best_is_kept() -> None:
    sampled = entry(0, 0.5)

    assert aligned(sampled, entry(1, 0.3), sampled=sampled, asked=2).cells == ((0,), (1,))


@pytest.mark.parametrize("value", [-9999.0, -100.0, -math.inf])
def test_a_sentinel_is_dropped_and_never_a_probability(value: float) -> None:
    row = aligned(entry(0, 0.5), TokenLogprob("b", value, token_id=1))

    assert row.cells == ((0,),)
    assert row.dropped == (Defect.SENTINEL,)


def test_a_tiny_value_is_kept_where_the_rest_of_the_row_allows_it() -> None:
    row = aligned(TokenLogprob("a", 0.0, token_id=0), TokenLogprob("b", -60.0, token_id=1))

    assert row.cells == ((0,), (1,))


def test_the_number_9999_is_a_sentinel_even_there() -> None:
    row = aligned(TokenLogprob("a", 0.0, token_id=0), TokenLogprob("b", -9999.0, token_id=1))

    assert row.dropped == (Defect.SENTINEL,)


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ((), Defect.EMPTY),
        ((TokenLogprob("a", math.nan, token_id=0),), Defect.NOT_A_NUMBER),
        ((TokenLogprob("a", 0.5, token_id=0),), Defect.POSITIVE),
        ((entry(0, 0.7), entry(1, 0.4)), Defect.SUM_ABOVE_ONE),
        ((TokenLogprob("a", 0.0, token_id=0), TokenLogprob("b", 0.0, token_id=1)), Defect.ALL_ZERO),
        ((entry(0, 0.5), entry("a", 0.3)), Defect.DUPLICATE),
        ((entry("zzz", 0.5),), Defect.UNIDENTIFIED),
        ((TokenLogprob("a", -9999.0, token_id=0),), Defect.SENTINEL),
    ],
)
def test_a_row_that_cannot_be_used_names_its_defect(top: tuple[TokenLogprob, ...], expected: Defect) -> None:
    assert defect(*top) is expected


def test_a_certain_token_alone_is_not_an_all_zero_row() -> None:
    assert aligned(TokenLogprob("a", 0.0, token_id=0)).unseen == 0.0
