import pytest

from evals.compare.texts import embedded_sequences
from probes.context_curve import load_text
from ringtrue.errors import UsageError


def encode(text: str) -> tuple[int, ...]:
    """One token a character."""
    return tuple(map(ord, text))


def test_slices_take_turns_among_the_kinds_of_text_and_have_the_length() -> None:
    slices = embedded_sequences(encode, length=200, count=10, seed=1)

    assert [len(ids) for ids in slices] == [200] * 10
    kinds = [
        next(kind for kind in ("english", "code", "json", "cjk") if "".join(map(chr, ids)) in load_text(kind))
        for ids in slices
    ]
    assert kinds == ["english", "code", "json", "cjk"] * 2 + ["english", "code"]


def test_no_two_slices_are_equal_and_the_seed_decides_which_they_are() -> None:
    slices = embedded_sequences(encode, length=100, count=400, seed=1)

    assert len(set(slices)) == 400
    assert slices == embedded_sequences(encode, length=100, count=400, seed=1)
    assert slices[:40] == embedded_sequences(encode, length=100, count=40, seed=1)
    assert slices != embedded_sequences(encode, length=100, count=400, seed=2)


def test_more_than_the_texts_hold_is_refused_with_their_number() -> None:
    with pytest.raises(UsageError, match=r"hold \d sequences of 200,000 tokens, not 32") as caught:
        embedded_sequences(encode, length=200_000, count=32, seed=1)
    assert caught.value.remedy is not None
    assert "--corpus" in caught.value.remedy
