from tokenizers import Tokenizer
from tokenizers.models import BPE

from reference_engine.embedded import embedded_file
from reference_engine.local_reference import LocalReference
from reference_engine.pre_tokenizers import apply_pre_tokenizer, named_pre_tokenizer


def test_the_embedded_file_names_its_split() -> None:
    assert named_pre_tokenizer(embedded_file()) == "smollm"


def test_digits_of_the_embedded_model_stand_alone_as_in_training(reference: LocalReference) -> None:
    # The IDs that llama.cpp gives for the same file.
    assert reference.encode("in 1983 there") == (254, 216, 33, 41, 40, 35, 665)


def test_a_split_that_transformers_knows_is_left_alone() -> None:
    tokenizer = Tokenizer(BPE())

    for name in ("gpt-2", "llama-bpe", "unheard-of", None):
        apply_pre_tokenizer(tokenizer, name)

    assert tokenizer.pre_tokenizer is None
