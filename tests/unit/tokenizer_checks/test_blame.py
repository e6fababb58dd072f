from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer
from tokenizer_checks.blame import Blame, Layer, blame
from tokenizer_checks.difference import difference
from tokenizer_checks.vocabulary import Vocabulary

TOOLS = (
    '{"type": "function", "function": {"name": "get_weather", "description": "Get <now> the weather", '
    '"parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}'
)
SYSTEM = "<|im_start|>system\nYou are a helpful assistant.\n\nToday Date: 30 Nov 2026\n\n"
BLOCK = f"# Tools\n\n<tools>\n{TOOLS}\n</tools>\n"
FIRST = "<|im_end|>\n<|im_start|>user\nName a town.<|im_end|>\n"
ANSWER = "<|im_start|>assistant\nPisa is a town in Tuscany.<|im_end|>\n"
ASKED = "<|im_start|>user\nWhy is the sky blue, and the sunset red?<|im_end|>\n"
SUFFIX = "<|im_start|>assistant\n"
PROMPT = "<s>" + SYSTEM + BLOCK + FIRST + ANSWER + ASKED + SUFFIX


def _without(part: str) -> str:
    assert part in PROMPT
    return PROMPT.replace(part, "")


FAULTS: dict[str, tuple[str, Layer]] = {
    "BOS twice": ("<s>" + PROMPT, Layer.BOS),
    "no BOS": (PROMPT.removeprefix("<s>"), Layer.BOS),
    "no generation prompt": (PROMPT.removesuffix(SUFFIX), Layer.SUFFIX),
    "thinks though it should not": (PROMPT + "<think>\n", Layer.SUFFIX),
    "prefill closed": (PROMPT + "Sure<|im_end|>\n<|im_start|>assistant\n", Layer.SUFFIX),
    "another BOS": ("<think>" + PROMPT.removeprefix("<s>"), Layer.BOS),
    "BOS in each turn": (PROMPT.replace("<|im_start|>user", "<s><|im_start|>user"), Layer.BOS),
    "marker misspelt": (PROMPT.replace("<|im_start|>user", "<im-start>user"), Layer.SPECIAL),
    "begin lost with part of a turn": (PROMPT[PROMPT.index("Name a town.") :], Layer.TRUNCATION),
    "EOS behind the prompt": (PROMPT + "<|im_end|>", Layer.EOS),
    "turn not closed": (PROMPT.replace("Tuscany.<|im_end|>\n", "Tuscany."), Layer.EOS),
    "another system prompt": (PROMPT.replace("You are a helpful assistant.", "Be short."), Layer.SYSTEM),
    "no tools": (_without(BLOCK), Layer.TOOLS),
    "tools without spaces": (PROMPT.replace('": ', '":').replace(", ", ","), Layer.TOOLS),
    "tools escaped": (PROMPT.replace("<now>", "\\u003cnow\\u003e"), Layer.TOOLS),
    "tools with a key more": (PROMPT.replace('["city"]}}}', '["city"]}, "strict": false}}'), Layer.TOOLS),
    "another day": (PROMPT.replace("30 Nov 2026", "26 Jul 2024"), Layer.DATE),
    "no date": (_without("Today Date: 30 Nov 2026\n\n"), Layer.DATE),
    "last line break lost": (PROMPT.removesuffix("\n"), Layer.WHITE_SPACE),
    "empty lines lost": (PROMPT.replace("\n\n", "\n"), Layer.WHITE_SPACE),
    "earlier turns lost": (_without(FIRST.removeprefix("<|im_end|>\n") + ANSWER), Layer.TRUNCATION),
    "earlier answer lost": (_without(ANSWER), Layer.HISTORY),
    "earlier answer changed": (PROMPT.replace("Pisa is a town in Tuscany.", "None"), Layer.HISTORY),
    "content as a list": (PROMPT.replace(ASKED[17:-11], f"[{{'text': '{ASKED[17:-11]}'}}]"), Layer.CONTENT),
}


def _blame(small: SmallTokenizer, used: list[int]) -> Blame:
    found = difference(small.ids(PROMPT), used, small.vocabulary)
    assert found is not None
    return blame(found, small.vocabulary)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_blamed_on_its_layer(small: SmallTokenizer, name: str) -> None:
    text, layer = FAULTS[name]

    assert _blame(small, small.ids(text)).layer is layer


CALLED = (
    "<s>" + SYSTEM + FIRST + '<|im_start|>assistant\n<tool_call>{"city": "Pisa"}</tool_call><|im_end|>\n'
    "<|im_start|>tool\nSunny<|im_end|>\n" + SUFFIX
)


@pytest.mark.parametrize(
    ("old", "new", "layer"),
    [
        ('<tool_call>{"city": "Pisa"}</tool_call>', "", Layer.HISTORY),
        ("<|im_start|>tool\n", "<|im_start|>user\n", Layer.HISTORY),
        (SUFFIX, SUFFIX + "<think>\n", Layer.SUFFIX),
    ],
)
def test_calls_behind_the_last_question_are_history_and_only_the_open_turn_is_the_suffix(
    small: SmallTokenizer, old: str, new: str, layer: Layer
) -> None:
    head, _, tail = CALLED.rpartition(old)
    found = difference(small.ids(CALLED), small.ids(head + new + tail), small.vocabulary)

    assert found is not None
    assert blame(found, small.vocabulary).layer is layer


def test_escapes_in_calls_are_the_tools_only_where_the_definitions_have_them_too(
    small: SmallTokenizer,
) -> None:
    both = CALLED.replace("Pisa", "<Pisa>").replace(FIRST, BLOCK + FIRST)

    def blamed(used: str) -> Layer:
        found = difference(small.ids(both), small.ids(used), small.vocabulary)
        assert found is not None
        return blame(found, small.vocabulary).layer

    assert blamed(both.replace("<Pisa>", "\\u003cPisa\\u003e")) is Layer.HISTORY
    escaped = both.replace("<Pisa>", "\\u003cPisa\\u003e").replace("<now>", "\\u003cnow\\u003e")
    assert blamed(escaped) is Layer.TOOLS


def test_a_no_break_space_that_becomes_a_plain_one_is_a_change_of_the_text(small: SmallTokenizer) -> None:
    expected = small.ids(PROMPT.replace("sky blue", "sky\u00a0blue"))
    found = difference(expected, small.ids(PROMPT), small.vocabulary)

    assert found is not None
    assert blame(found, small.vocabulary).layer is Layer.CONTENT


def test_spaces_before_pieces_tokenized_apart_are_the_tokenizer_and_beside_a_marker_white_space() -> None:
    texts = ["<u>", "</u>", "why", "is", "it", " why", " is", " it", " "]

    def decode(ids: Sequence[int]) -> str:  # as SentencePiece: a text's first space is not written
        return "".join(texts[i] for i in ids).removeprefix(" ")

    vocabulary = Vocabulary(decode, frozenset({0, 1}), ends=frozenset({1}), size=len(texts))

    def blamed(used: list[int]) -> Layer:
        found = difference([0, 2, 6, 7, 1], used, vocabulary)
        assert found is not None
        return blame(found, vocabulary).layer

    assert blamed([0, 2, 8, 6, 8, 7, 1]) is Layer.TOKENIZER
    assert blamed([0, 5, 6, 7, 1]) is Layer.WHITE_SPACE


def test_text_cut_inside_its_tokens_is_a_truncation_and_replaced_text_is_content(
    small: SmallTokenizer,
) -> None:
    numbers = " ".join(str(number) for number in range(100, 140))
    expected = small.ids(PROMPT.replace("the sky blue", numbers))

    def blamed(left: str) -> Layer:
        found = difference(expected, small.ids(PROMPT.replace("the sky blue", left)), small.vocabulary)
        assert found is not None
        return blame(found, small.vocabulary).layer

    assert blamed(numbers[:26] + numbers[-14:]) is Layer.TRUNCATION
    assert blamed(numbers[:24] + "Rome" + numbers[-16:]) is Layer.CONTENT


def test_a_whole_system_turn_that_is_missing_is_the_system_prompt(small: SmallTokenizer) -> None:
    expected = small.ids(PROMPT.replace(BLOCK, ""))
    found = difference(expected, small.ids(_without(SYSTEM + BLOCK + "<|im_end|>\n")), small.vocabulary)

    assert found is not None
    assert blame(found, small.vocabulary).layer is Layer.SYSTEM


def test_a_marker_read_as_text_is_special_token_handling(small: SmallTokenizer) -> None:
    head, tail = PROMPT.split(ANSWER)
    used = small.ids(head) + small.unmarked(ANSWER) + small.ids(tail)

    assert _blame(small, used).layer is Layer.SPECIAL


def test_the_same_text_in_other_tokens_is_the_tokenizer(small: SmallTokenizer) -> None:
    head, tail = PROMPT.split(ASKED)
    used = small.ids(head + "<|im_start|>user\n")
    used += [part for char in ASKED[17:-11] for part in small.ids(char)] + small.ids("<|im_end|>\n" + tail)

    assert _blame(small, used).layer is Layer.TOKENIZER


def test_ids_outside_the_vocabulary_are_the_tokenizer_and_are_not_decoded(small: SmallTokenizer) -> None:
    used = [*small.ids(PROMPT)[:-1], 10**12]
    found = difference(small.ids(PROMPT), used, small.vocabulary)

    assert found is not None
    assert "[unknown ID 1000000000000]" in found.used_window.text
    assert blame(found, small.vocabulary).layer is Layer.TOKENIZER


def test_ids_of_another_vocabulary_are_the_tokenizer(small: SmallTokenizer) -> None:
    ids = small.ids(PROMPT)
    other = np.random.default_rng(1).permutation(200).tolist()

    assert _blame(small, [other[i % 200] for i in ids]).layer is Layer.TOKENIZER


def test_a_lost_end_with_the_question_is_a_truncation_though_it_begins_with_a_turn(
    small: SmallTokenizer,
) -> None:
    assert _blame(small, small.ids(PROMPT.removesuffix(ASKED + SUFFIX))).layer is Layer.TRUNCATION


@pytest.mark.parametrize(
    "cut",
    [
        lambda ids: ids[:-40],
        lambda ids: ids[:1] + ids[len(ids) // 2 - 3 :],
        lambda ids: ids[: len(ids) // 3] + ids[-70:],
    ],
    ids=["end", "begin", "middle"],
)
def test_a_cut_in_mid_text_is_a_truncation(
    small: SmallTokenizer, cut: Callable[[list[int]], list[int]]
) -> None:
    assert _blame(small, cut(small.ids(PROMPT))).layer is Layer.TRUNCATION


def test_the_mutations_that_give_exactly_the_used_ids_are_named(small: SmallTokenizer) -> None:
    used = small.ids("<s>" + PROMPT)
    found = difference(small.ids(PROMPT), used, small.vocabulary)
    assert found is not None

    told = blame(found, small.vocabulary, {"bos.double": used, "twice": tuple(used), "eos.added": [1]})

    assert told.mutations == ("bos.double", "twice")
    assert "exactly those of bos.double and of twice" in told.sentence


def test_the_sentence_says_how_many_where_and_what(small: SmallTokenizer) -> None:
    told = _blame(small, small.ids("<s>" + PROMPT))

    total = len(small.ids(PROMPT))
    assert told.sentence == (
        f"1 token more, first difference at token 1 of {total}: "
        "the token that begins a prompt is missing, doubled or another one"
    )


def test_the_sentence_holds_no_text_of_the_prompt(small: SmallTokenizer) -> None:
    told = _blame(small, small.ids(PROMPT.replace("Pisa is a town in Tuscany.", "A secret.")))

    assert "secret" not in told.sentence
    assert "Pisa" not in told.sentence


def test_two_faults_are_both_told_the_greater_first(small: SmallTokenizer) -> None:
    used = small.ids("<s>" + PROMPT.replace("You are a helpful assistant.", "Be short."))
    told = _blame(small, used)

    assert told.layer is Layer.SYSTEM
    assert Layer.BOS in told.alternatives
    assert [layer for layer, _ in told.layers] == [Layer.BOS, Layer.SYSTEM]


def test_equal_ids_have_no_difference(small: SmallTokenizer) -> None:
    assert difference(small.ids(PROMPT), small.ids(PROMPT), small.vocabulary) is None


@given(
    st.lists(st.integers(), max_size=12), st.lists(st.integers(), max_size=12), st.frozensets(st.integers())
)
def test_any_integers_are_blamed_on_something(
    expected: list[int], used: list[int], special: frozenset[int]
) -> None:
    vocabulary = Vocabulary(lambda ids: "".join(chr(97 + i % 26) for i in ids), special)
    found = difference(expected, used, vocabulary)

    if expected == used:
        assert found is None
    else:
        assert found is not None
        assert blame(found, vocabulary).layer in Layer


@given(st.lists(st.integers(0, 200), max_size=80), st.lists(st.integers(0, 200), max_size=80))
def test_windows_hold_the_first_difference_and_at_most_64_ids(expected: list[int], used: list[int]) -> None:
    found = difference(expected, used, Vocabulary(str))

    if found is not None:
        assert len(found.expected_window.ids) + len(found.used_window.ids) <= 64
        for window, ids in ((found.expected_window, expected), (found.used_window, used)):
            assert window.start <= found.first
            assert window.ids == tuple(ids[window.start : window.start + len(window.ids)])
