import base64
import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.models.codec import TokenCodec
from reference_engine.tokenizers.opening import open_tokenizer
from reference_engine.tokenizers.tiktoken_files import Encoding
from ringtrue.errors import ModelError

PATTERN = r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)|\s+"
SPECIAL = {"<|start|>": 1000, "<|end|>": 1003}  # with a gap between them
TEXT = (
    "the theory of the thing, and then there, in that other weather; 1234567 tested; isn't it? IT'S "
    "aaaa aaaaaaaa aaaaaaaaaaaaaaaa     \t\t\n\n -------- ======== "
    "\u4f60\u597d\u4e16\u754c \u00e9t\u00e9 cr\u00e8me"
)


def learned_ranks(text: str) -> dict[bytes, int]:
    """Byte-pair ranks learned from the words of a text, the most frequent pair first."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    words = [[bytes([byte]) for byte in word.encode()] for word in re.findall(r" ?\S+|\s+", text)]
    while any(len(word) > 1 for word in words):
        pairs = Counter(pair for word in words for pair in itertools.pairwise(word))
        (left, right), _ = max(pairs.items(), key=lambda item: (item[1], item[0]))
        ranks.setdefault(left + right, len(ranks))
        words = [merged(word, left, right) for word in words]
    return ranks


def merged(symbols: list[bytes], left: bytes, right: bytes) -> list[bytes]:
    result: list[bytes] = []
    for symbol in symbols:
        if result and result[-1] == left and symbol == right:
            result[-1] = left + right
        else:
            result.append(symbol)
    return result


RANKS = learned_ranks(TEXT)
LIBRARY = tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks=RANKS, special_tokens=SPECIAL)


def write(path: Path, ranks: dict[bytes, int] = RANKS) -> Path:
    lines = [base64.b64encode(token) + b" %d" % rank for token, rank in ranks.items()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> TokenCodec:
    path = write(tmp_path_factory.mktemp("tiktoken") / "small.tiktoken")
    return open_tokenizer(path, Encoding(PATTERN, SPECIAL))


pieces = st.sampled_from([token.decode() for token in RANKS if token.isascii()] + ["\u4f60\u597d", *SPECIAL])


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(pieces, max_size=30).map("".join)))
def test_every_text_has_the_ids_that_tiktoken_gives_it(codec, text):
    assert list(codec.encode(text)) == LIBRARY.encode(text, disallowed_special=())
    assert list(codec.encode_prompt(text)) == LIBRARY.encode(text, allowed_special="all")
    assert codec.decode(codec.encode(text)) == text


@pytest.mark.parametrize("length", range(1, 40))
def test_runs_of_one_character_are_merged_from_the_left(codec, length):
    for char in "a -\n\t":
        assert list(codec.encode(char * length + "b")) == LIBRARY.encode(char * length + "b")


def test_special_tokens_have_the_ids_they_were_given(codec):
    assert codec.special_ids == {1000, 1003}
    assert codec.vocabulary_size == 1004
    assert codec.decode([1000, 256, 1003]).startswith("<|start|>")


def test_what_the_file_leaves_out_is_read_from_the_configuration_beside_it(tmp_path):
    write(tmp_path / "tiktoken.model")
    config = {
        "pat_str": PATTERN,
        "added_tokens_decoder": {"1000": {"content": "<|start|>"}, "1003": {"content": "<|end|>"}},
        "eos_token": "<|end|>",
        "chat_template": "{{ messages }}",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))

    codec = open_tokenizer(tmp_path)

    assert list(codec.encode_prompt("the <|end|>")) == LIBRARY.encode("the <|end|>", allowed_special="all")
    assert codec.eos_id == 1003
    assert codec.template == "{{ messages }}"


def test_a_cut_that_nobody_gave_is_not_guessed(tmp_path):
    with pytest.raises(ModelError, match="how text is cut") as raised:
        open_tokenizer(write(tmp_path / "small.tiktoken"))
    assert "pat_str" in str(raised.value.remedy)


@pytest.mark.parametrize(
    ("special", "problem"),
    [({"<|x|>": 5}, "has the ID 5"), ({"a": 1000}, "'a'"), ({"<|x|>": 1000, "<|y|>": 1000}, "<|y|>")],
)
def test_special_tokens_that_clash_are_refused(tmp_path, special, problem):
    with pytest.raises(ModelError) as raised:
        open_tokenizer(write(tmp_path / "small.tiktoken"), Encoding(PATTERN, special))
    assert problem in raised.value.message


def test_a_cut_that_is_no_expression_is_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot be compiled"):
        open_tokenizer(write(tmp_path / "small.tiktoken"), Encoding("(", SPECIAL))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"not a line\n", "no token in base64"),
        (b"YQ== 0\nYQ== 1\n", "stood before"),
        (b"YQ== 0\nYg== 0\n", "one rank"),
        (b"YQ== 0\nYg== 1\n", "byte 0x00 has no token"),
        (b"YQ 0\n", "no base64"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, content, problem):
    path = tmp_path / "broken.tiktoken"
    path.write_bytes(content)

    with pytest.raises(ModelError, match=problem) as raised:
        open_tokenizer(path, Encoding(PATTERN))
    assert str(path) in str(raised.value.where)
