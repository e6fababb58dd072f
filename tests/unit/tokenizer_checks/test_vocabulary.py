from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer
from tokenizer_checks.vocabulary import Vocabulary


def test_ids_that_the_vocabulary_lacks_are_written_out_and_never_decoded(small: SmallTokenizer) -> None:
    ids = small.ids("sky")

    assert small.vocabulary.text([-1, *ids, 99_999]) == "[unknown ID -1]sky[unknown ID 99999]"
    assert small.vocabulary.text([]) == ""


def test_text_behind_another_token_keeps_its_first_space() -> None:
    def decode(ids: list[int]) -> str:  # as SentencePiece does
        return "".join(" the" for _ in ids).removeprefix(" ")

    assert Vocabulary(decode).text_of([1, 1], 1, 2) == " the"
    assert Vocabulary(decode).text_of([1, 1], 0, 1) == "the"
