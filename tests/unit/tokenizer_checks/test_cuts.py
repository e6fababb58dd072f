from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer
from tokenizer_checks.alignment import Run
from tokenizer_checks.difference import difference
from tokenizer_checks.prompt_turns import prompt_turns
from tokenizer_checks.regions import slides

SYSTEM = "<s><|im_start|>system\nBe kind.<|im_end|>\n"
ASKED = "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n"
OPEN = "<|im_start|>assistant\n"


@given(st.lists(st.integers(0, 2), min_size=1, max_size=20), st.data())
def test_a_run_slides_to_all_places_that_leave_the_same_tokens_and_to_no_other(
    ids: list[int], data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(ids)))
    start = data.draw(st.integers(0, len(ids) - size))
    left = ids[:start] + ids[start + size :]
    same = [at for at in range(len(ids) - size + 1) if ids[:at] + ids[at + size :] == left]

    found = list(slides(ids, Run(start, start + size, start, start)))

    assert found[0] == start
    assert sorted(found) == same


def test_the_turn_that_the_answer_goes_on_is_open_and_a_closed_one_is_not(small: SmallTokenizer) -> None:
    asked, closed = (
        small.ids(SYSTEM + ASKED + OPEN),
        small.ids(SYSTEM + ASKED + OPEN + "Rayleigh.<|im_end|>\n"),
    )
    found = difference(asked, closed, small.vocabulary)

    assert found is not None
    told = prompt_turns(found, small.vocabulary)
    assert told.opened == len(small.ids(SYSTEM + ASKED))
    assert told.used_opened == len(closed)
    asking = told.last_user()
    assert asking is not None
    assert asking.start == len(small.ids(SYSTEM))


def test_a_prompt_that_asks_for_no_answer_opens_no_turn(small: SmallTokenizer) -> None:
    found = difference(small.ids(SYSTEM + ASKED), small.ids(SYSTEM), small.vocabulary)

    assert found is not None
    assert prompt_turns(found, small.vocabulary).opened == len(found.expected)
