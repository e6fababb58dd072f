import numpy as np
import pytest

from reference_engine.baselines.corpus import Corpus, TokenSequence, checked_sequence
from ringtrue.errors import UsageError


def corpus(*sequences):
    return Corpus(tuple(TokenSequence(np.array(ids, dtype=np.int32), "x") for ids in sequences))


def checked(ids):
    return checked_sequence(ids, "c.jsonl:3", context_length=4, vocabulary_size=10)


def test_tokens_and_scored_positions_are_counted():
    assert (len(corpus([1, 2], [3, 4, 5])), corpus([1, 2], [3, 4, 5]).tokens) == (2, 5)
    assert corpus([1, 2], [3, 4, 5]).positions == 3


def test_the_digest_is_of_the_ids_and_of_where_they_are_cut():
    digests = [
        corpus([1, 2, 3], [4, 5]).digest(),
        corpus([1, 2], [3, 4, 5]).digest(),
        corpus([4, 5], [1, 2, 3]).digest(),
        corpus([1, 2, 3, 4, 5]).digest(),
        corpus([1, 2, 3], [4, 6]).digest(),
    ]
    assert len(set(digests)) == len(digests)
    assert corpus([1, 2, 3], [4, 5]).digest() == digests[0]


def test_the_digest_is_the_documented_one():
    # sha256 of the domain line, then length and IDs, 4 bytes each, little-endian.
    assert corpus([1, 2]).digest() == ("85e281b3a450885aa9b8459288ea0646fcf13fc9cbb66f81d7428f41b31a10cf")


def test_a_sequence_of_numpy_or_python_numbers_is_the_same():
    assert checked([1, 2]).token_ids.tolist() == checked(np.array([1, 2], dtype=np.int32)).token_ids.tolist()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "has 0 tokens"),
        ([1], "has 1 token,"),
        ([1, 2, 3, 4, 5], r"has 5 tokens, the model takes 4\. Shorten it"),
        ([1, 10], "no token 10 .* 0 to 9"),
        ([-1, 2], "no token -1"),
        ([1, 10**12], "no token 1000000000000"),
    ],
)
def test_what_the_model_cannot_score_is_named_with_its_place(ids, message):
    with pytest.raises(UsageError, match=rf"^c\.jsonl:3: .*{message}"):
        checked(ids)
