import gguf
from gguf import GGUFReader
from tokenizers import Tokenizer
from tokenizers.models import BPE

from reference_engine.local_reference import LocalReference
from reference_engine.models.embedded import embedded_file
from reference_engine.models.gguf_once import read_once
from reference_engine.models.pre_tokenizers import apply_pre_tokenizer, named_pre_tokenizer


def test_the_embedded_file_names_its_split() -> None:
    assert named_pre_tokenizer(GGUFReader(embedded_file())) == "smollm"


def test_digits_of_the_embedded_model_stand_alone_as_in_training(reference: LocalReference) -> None:
    # The IDs that llama.cpp gives for the same file.
    assert reference.encode("in 1983 there") == (254, 216, 33, 41, 40, 35, 665)


def test_a_split_that_transformers_knows_is_left_alone() -> None:
    tokenizer = Tokenizer(BPE())

    for name in ("gpt-2", "llama-bpe", "unheard-of", None):
        apply_pre_tokenizer(tokenizer, name)

    assert tokenizer.pre_tokenizer is None


def test_a_file_is_parsed_once_while_a_model_loads_and_as_ever_afterwards() -> None:
    before = gguf.GGUFReader
    with read_once() as reader:
        assert reader(str(embedded_file())) is gguf.GGUFReader(embedded_file())
        assert gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2) is gguf.get_tensor_name_map(
            gguf.MODEL_ARCH.LLAMA, 2
        )
    assert gguf.GGUFReader is before
