from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcall_validator.loops import LoopWatch, loop_start, repeating

SPACES = (" ", "\n", "  ", "\u2003")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Text that loops, nearly loops, loops by words of uneven spacing, or does not."""
    before = draw(st.text(alphabet="ab ", max_size=12))
    unit = draw(st.text(alphabet="ab \n", min_size=1, max_size=12))
    copies = draw(st.integers(0, 36))
    words = unit.split()
    uneven = draw(st.integers(0, 4))
    if words and uneven:
        looped = "".join(word + SPACES[n * uneven % len(SPACES)] for n in range(copies) for word in words)
    else:
        looped = unit * copies
    cut = draw(st.integers(0, len(looped)))
    return before + looped[: len(looped) - cut % 3] + draw(st.text(alphabet="ab \n", max_size=3))


def pieces_of(text: str, sizes: list[int]) -> list[str]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


@given(texts(), st.lists(st.integers(0, 20), max_size=20))
@example("!" * 32, [31])
@example("no " * 31 + "n", [40])
@example(" \n" * 40, [3])
def test_a_growing_text_is_judged_as_the_whole_one(text: str, sizes: list[int]) -> None:
    watch = LoopWatch()
    fed = ""
    for piece in pieces_of(text, sizes):
        fed += piece
        assert watch.feed(piece) is (loop_start(fed) is not None)
        assert watch.start == loop_start(fed)
    assert fed == text


@given(texts())
def test_a_loop_is_seen_at_the_first_character_that_makes_it_one(text: str) -> None:
    watch = LoopWatch()
    watch.feed(text)
    first = next((n for n in range(len(text) + 1) if loop_start(text[:n]) is not None), None)
    assert watch.seen_at == first


@pytest.mark.parametrize("period", range(1, 51))
def test_a_loop_needs_four_copies_and_32_units_and_is_seen_right_then(period: int) -> None:
    needed = max(4 * period, 32)
    unit = "".join(chr(0x4E00 + n) for n in range(period))
    text = (unit * 32)[:needed]
    watch = LoopWatch()
    assert not watch.feed("Well: " + text[:-1])
    assert watch.feed(text[-1])
    assert (watch.start, watch.seen_at) == (6, 6 + needed)
    words = text.replace("", " ").split()
    assert [repeating(words), repeating(words[1:])] == [needed, None]


@pytest.mark.parametrize(
    "text", ["", " ", "abc" * 10, "x" * 31, "".join(chr(0x4E00 + n) for n in range(51)) * 9]
)
def test_what_is_shorter_or_slower_is_no_loop(text: str) -> None:
    watch = LoopWatch()
    assert not watch.feed(text)
    assert (loop_start(text), watch.start, watch.seen_at) == (None, None, None)


def test_a_loop_that_ended_is_remembered_and_no_longer_told() -> None:
    watch = LoopWatch()
    assert watch.feed("!" * 40)
    assert watch.feed("  \n")
    assert not watch.feed("and so on")
    assert (watch.start, watch.seen_at) == (None, 32)


def test_a_loop_of_words_begins_at_its_first_word_whatever_lies_between() -> None:
    text = "Then   " + "".join(f"go{' ' * (copy % 5)}\n on\tand on " for copy in range(12))
    assert repeating(text.rstrip()) is None
    watch = LoopWatch()
    assert watch.feed(text)
    assert watch.start == loop_start(text) == 7


def test_work_does_not_grow_with_what_was_fed() -> None:
    watch = LoopWatch()
    for _ in range(200):
        watch.feed("x" * 1_000 + " ")
    held = [watch._characters, watch._words]
    assert all(len(runs._units) <= 50 and len(runs._runs) <= 50 for runs in held)
