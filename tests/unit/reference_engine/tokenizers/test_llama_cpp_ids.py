"""Our IDs against llama.cpp's own: its vocabulary files, the texts of its test and the IDs it expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.material import vocabulary_folder

_SEPARATOR = "\n__ggml_vocab_test__\n"
WITH_IDS = [
    "bert-bge",
    "command-r",
    "deepseek-coder",
    "deepseek-llm",
    "falcon",
    "gemma-4",
    "gpt-2",
    "llama-bpe",
    "llama-spm",
    "mpt",
    "phi-3",
    "qwen2",
    "qwen35",
    "refact",
    "starcoder",
]
WITHOUT_IDS = ["aquila", "baichuan", "gpt-neox", "nomic-bert-moe"]
# What the four without a file of IDs give for one text; llama-cpp-python 0.3.36 says the same.
TEXT = "Hello  world, in 1983\n\t\u00e9t\u00e9 \u4f60\u597d"


def expected(name: str) -> list[tuple[str, tuple[int, ...]]]:
    """Each text of the file with its IDs, read as llama.cpp's ``test-tokenizer-0`` reads them."""
    inputs = vocabulary_folder() / f"ggml-vocab-{name}.gguf.inp"
    texts = inputs.read_bytes().decode().split(_SEPARATOR)
    lines = inputs.with_suffix(".out").read_text().split("\n")[: len(texts)]
    return [(text, tuple(map(int, line.split()))) for text, line in zip(texts, lines, strict=True)]


def test_the_two_lists_are_all_the_vocabularies_there_are():
    names = {path.stem.removeprefix("ggml-vocab-") for path in vocabulary_folder().glob("*.gguf")}
    paired = {Path(path.stem).stem.removeprefix("ggml-vocab-") for path in vocabulary_folder().glob("*.out")}
    assert paired == set(WITH_IDS)
    assert names == {*WITH_IDS, *WITHOUT_IDS}


@pytest.mark.parametrize("name", WITH_IDS)
def test_every_text_of_llama_cpps_own_test_has_the_ids_it_expects(vocabulary, name):
    codec = vocabulary(name)  # llama.cpp's test adds no special tokens and parses none

    wrong = [(text, ids, codec.encode(text)) for text, ids in expected(name) if codec.encode(text) != ids]

    assert wrong == []
    assert len(expected(name)) >= 46


@pytest.mark.parametrize(
    ("name", "bos", "ends", "special", "size"),
    [
        ("phi-3", 1, {2, 32000, 32007}, 67, 32_064),
        ("qwen2", 151_643, {151_643, 151_645}, 293, 151_936),
        ("llama-spm", 1, {2}, 3, 32_000),
        ("bert-bge", 101, set(), 5, 30_522),
    ],
)
def test_the_file_says_which_tokens_are_special_and_which_end_an_answer(
    vocabulary, name, bos, ends, special, size
):
    codec = vocabulary(name)
    assert codec.bos_id == bos
    assert codec.end_ids == ends
    assert len(codec.special_ids) == special
    assert codec.vocabulary_size == size


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("aquila", (22299, 221, 3117, 12, 307, 221, 21171, 19, 199, 198, 81525, 221, 34856)),
        (
            "baichuan",
            (1, 24568, 31106, 1275, 31125, 677, 31106, 53, 61, 60, 55, 5, 6, 14151, 31418, 9875, 31213),
        ),
        ("gpt-neox", (12092, 50276, 10186, 13, 275, 209, 16903, 20, 187, 186, 39929, 209, 24553, 34439)),
        ("nomic-bert-moe", (0, 35378, 8999, 4, 23, 26819, 5325, 6, 124084, 2)),
    ],
)
def test_vocabularies_without_a_file_of_ids_give_those_of_a_real_llama_cpp(vocabulary, name, ids):
    assert vocabulary(name).encode_prompt(TEXT) == ids
