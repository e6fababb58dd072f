import pytest

from reference_engine.tokenizers.pieces import spelt
from reference_engine.tokenizers.pre_tokenizers import cut_named, cut_names
from ringtrue.errors import ModelError

TEXT = "It's 12345\u00d712, \u00c9coleDo\u017b\n\n  x = \u4f60\u597d\u304b\u306a"
TEXT += " \ud55c\uad6d\u0e44\u0e17\u0e22 \t\u2028//\u0301 end  "


def cut(name: str | None, text: str) -> list[str]:
    pieces = cut_named(name, "model.gguf").pre_tokenizer().pre_tokenize_str(text)
    byte_of = {spelt(bytes([byte])): byte for byte in range(256)}
    return [bytes(byte_of[char] for char in piece).decode() for piece, _ in pieces]


@pytest.mark.parametrize("name", sorted(cut_names()))
def test_a_cut_loses_nothing_and_adds_nothing(name):
    assert "".join(cut(name, TEXT)) == TEXT
    assert len(cut(name, TEXT)) > 5


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("gpt-2", ["It", "'s", " 1234", " ABCabc", "  ", "\n", "x"]),
        ("smollm", ["It", "'s", " ", "1", "2", "3", "4", " ABCabc", "  ", "\n", "x"]),
        ("llama-bpe", ["It", "'s", " ", "123", "4", " ABCabc", "  \n", "x"]),
        ("qwen2", ["It", "'s", " ", "1", "2", "3", "4", " ABCabc", "  \n", "x"]),
        ("gpt-4o", ["It's", " ", "123", "4", " ABCabc", "  \n", "x"]),
        ("tekken", ["It", "'s", " ", "1", "2", "3", "4", " ABCabc", "  \n", "x"]),
        ("kimi-k2", ["It's", " ", "123", "4", " ABCabc", "  \n", "x"]),
        ("deepseek-v3", ["It", "'s", " ", "123", "4", " ABCabc", "  \n", "x"]),
        ("afmoe", ["It", "'s", " ", "1", "234", " ABCabc", "  \n", "x"]),
        ("tiny_aya", ["It's", " ", "1", "234", " ABCabc", "  \n", "x"]),
        ("laguna", ["It", "'s", " ", "1", "2", "3", "4", " ABCabc", "  ", "\n", "x"]),
        ("falcon", ["It", "'", "s", " ", "123", "4", " ABCabc", "  ", "\n", "x"]),
    ],
)
def test_each_family_cuts_contractions_numbers_capitals_and_lines_in_its_own_way(name, pieces):
    assert cut(name, "It's 1234 ABCabc  \nx") == pieces


def test_han_stands_alone_where_kimi_was_trained_so():
    assert cut("kimi-k2", "abc\u4f60\u597dabc") == ["abc", "\u4f60\u597d", "abc"]
    assert cut("gpt-4o", "abc\u4f60\u597dabc") == ["abc\u4f60\u597dabc"]


def test_capitals_of_every_script_begin_a_word_as_in_the_models_own_expression():
    # llama.cpp's adaptation knows only those of ASCII, and cuts this nowhere.
    assert cut("tekken", "\u00e9cole\u00c9cole") == ["\u00e9cole", "\u00c9cole"]


def test_a_file_that_names_no_cut_has_the_one_that_llama_cpp_falls_back_to():
    assert cut(None, "a, 12345") == cut("default", "a, 12345") == ["a", ",", " 12345"[:1], "123", "45"]


def test_an_unknown_name_is_not_guessed():
    with pytest.raises(ModelError, match="of-tomorrow") as raised:
        cut_named("of-tomorrow", "model.gguf")
    assert raised.value.where == "model.gguf"
