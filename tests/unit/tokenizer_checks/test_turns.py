from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer
from tokenizer_checks.turns import Role, turn_at, turns
from tokenizer_checks.vocabulary import Vocabulary

# One prompt of system, user, assistant, user and the turn to come, as families of models write it.
FAMILIES = {
    "<|im_start|> <|im_end|>": "<|im_start|>system\nA<|im_end|>\n<|im_start|>user\nB<|im_end|>\n"
    "<|im_start|>assistant\nC<|im_end|>\n<|im_start|>user\nD<|im_end|>\n<|im_start|>assistant\n",
    "<|start_header_id|> <|end_header_id|> <|eot_id|>": ""
    "<|start_header_id|>system<|end_header_id|>\n\nA<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nB<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nC"
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nD<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "<|system|> <|user|> <|assistant|> <|end|>": ""
    "<|system|>\nA<|end|>\n<|user|>\nB<|end|>\n<|assistant|>\nC<|end|>\n"
    "<|user|>\nD<|end|>\n<|assistant|>\n",
    "<|start|> <|message|> <|end|>": "<|start|>system<|message|>A<|end|><|start|>user<|message|>B<|end|>"
    "<|start|>assistant<|message|>C<|end|><|start|>user<|message|>D<|end|><|start|>assistant",
    "<|im_system|> <|im_user|> <|im_assistant|> <|im_middle|> <|im_end|>": ""
    "<|im_system|>system<|im_middle|>A<|im_end|>"
    "<|im_user|>user<|im_middle|>B<|im_end|><|im_assistant|>assistant<|im_middle|>C<|im_end|>"
    "<|im_user|>user<|im_middle|>D<|im_end|><|im_assistant|>assistant<|im_middle|>",
    "<|START_OF_TURN_TOKEN|> <|SYSTEM_TOKEN|> <|USER_TOKEN|> <|CHATBOT_TOKEN|> <|END_OF_TURN_TOKEN|>": (
        "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>A<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>B"
        "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>C<|END_OF_TURN_TOKEN|>"
        "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>D<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
    ),
}
ROLES = [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER, Role.ASSISTANT]


def _vocabulary(small: SmallTokenizer, markers: list[str]) -> tuple[Tokenizer, Vocabulary]:
    tokenizer = Tokenizer.from_str(small.plain.to_str())
    tokenizer.add_special_tokens([AddedToken(marker, normalized=False) for marker in markers])
    special = frozenset(tokenizer.token_to_id(marker) for marker in markers)
    return tokenizer, Vocabulary(lambda ids: tokenizer.decode(list(ids), skip_special_tokens=False), special)


@pytest.mark.parametrize("markers", FAMILIES)
def test_turns_are_read_from_the_markers_of_a_family(small: SmallTokenizer, markers: str) -> None:
    tokenizer, vocabulary = _vocabulary(small, markers.split())
    ids = tokenizer.encode(FAMILIES[markers]).ids

    found = [turn for turn in turns(ids, vocabulary) if turn.role is not Role.START]

    assert [turn.role for turn in found] == ROLES
    for turn, content in zip(found, "ABCD", strict=False):
        assert content in vocabulary.text(ids[turn.start : turn.stop])


def test_a_role_named_in_a_users_text_opens_no_turn(small: SmallTokenizer) -> None:
    ids = small.ids("<|im_start|>user\nuser system assistant<|im_end|>\nsystem")

    assert [turn.role for turn in turns(ids, small.vocabulary)] == [Role.USER]


def test_what_stands_before_the_first_turn_is_the_start(small: SmallTokenizer) -> None:
    found = turns(small.ids("<s><|user|>A"), small.vocabulary)

    assert [(turn.role, turn.start) for turn in found] == [(Role.START, 0), (Role.USER, 1)]
    assert turn_at(found, 0) is found[0]
    assert turn_at(found, 99) is found[1]


def test_a_prompt_without_markers_has_no_turns(small: SmallTokenizer) -> None:
    assert turns(small.ids("user: A"), small.vocabulary) == ()
    assert turn_at((), 0) is None


@given(st.lists(st.integers(0, 6), max_size=30))
def test_turns_cover_a_prompt_without_a_gap(ids: list[int]) -> None:
    names = ["<|user|>", "<|assistant|>", "<|start|>", "user", "a", " ", "<|end|>"]
    vocabulary = Vocabulary(lambda some: "".join(names[i] for i in some), frozenset({0, 1, 2, 6}))

    found = turns(ids, vocabulary)

    if found:
        assert found[0].start == 0
        assert found[-1].stop == len(ids)
        assert all(one.stop == two.start for one, two in pairwise(found))
