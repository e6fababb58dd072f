from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.models.codec import TokenCodec
from reference_engine.models.embedded import embedded_file
from reference_engine.tokenizers.gguf_models import build_tokenizer
from reference_engine.tokenizers.gguf_vocabulary import GgufVocabulary
from reference_engine.tokenizers.opening import open_tokenizer
from reference_engine.tokenizers.pieces import spelt
from reference_engine.tokenizers.wrapping import wrapped
from ringtrue.errors import ModelError

BYTES = [spelt(bytes([byte])) for byte in range(256)]
FALLBACK = [f"<0x{byte:02X}>" for byte in range(256)]


def pairs(**changes: Any) -> dict[str, Any]:
    """The metadata of a small byte-pair vocabulary: bytes, "he", "hell", "ll", two control tokens."""
    tokens = [*BYTES, "he", "ll", "hell", "<s>", "</s>"]
    metadata = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": tokens,
        "token_type": [1] * 259 + [3, 3],
        "merges": ["h e", "l l", "he ll"],
        "bos_token_id": 259,
        "eos_token_id": 260,
    } | changes
    return {f"tokenizer.ggml.{key}": value for key, value in metadata.items() if value is not None}


def scored(**changes: Any) -> dict[str, Any]:
    """The metadata of a small SentencePiece vocabulary with a token for every byte."""
    pieces = {"\u2581": -3.0, "a": -4.0, "b": -5.0, "\u2581a": -1.0, "ab": -0.5, "<|user|>": 0.0}
    metadata = {
        "model": "llama",
        "tokens": ["<unk>", "<s>", "</s>", *FALLBACK, *pieces],
        "scores": [0.0] * 259 + list(pieces.values()),
        "token_type": [2, 3, 3] + [6] * 256 + [1, 1, 1, 1, 1, 4],
    } | changes
    return {f"tokenizer.ggml.{key}": value for key, value in metadata.items() if value is not None}


def codec(metadata: dict[str, Any]) -> TokenCodec:
    vocabulary = GgufVocabulary(metadata, "model.gguf")
    named = {name: vocabulary.tokens[token_id] for name, token_id in vocabulary.named_ids.items()}
    return TokenCodec(wrapped(build_tokenizer(vocabulary), named, vocabulary.templates))


def shown(codec: TokenCodec, ids: tuple[int, ...]) -> list[str]:
    return [codec.tokens()[token_id] for token_id in ids]


def test_the_embedded_model_splits_digits_as_in_training():
    codec = open_tokenizer(embedded_file())

    assert codec.encode("in 1983 there") == (254, 216, 33, 41, 40, 35, 665)  # as llama.cpp does
    assert codec.template is not None
    assert "SmolLM" in codec.template
    assert (codec.bos_id, codec.eos_id, codec.vocabulary_size) == (1, 2, 49_152)
    assert codec.special_tokens["bos_token"] == "<|im_start|>"
    assert codec.end_ids == {0, 2}
    assert len(codec.special_ids) == 17


def test_merges_are_applied_in_their_order():
    assert shown(codec(pairs()), codec(pairs()).encode("hello")) == ["hell", "o"]


def test_a_control_token_is_text_in_text_and_a_token_in_a_prompt():
    small = codec(pairs())

    assert small.encode("<s>") == tuple(b"<s>"[i] for i in range(3))
    assert small.encode_prompt("<s>he") == (259, 256)
    assert small.decode((259, 256)) == "<s>he"
    assert small.is_special(259)


def test_a_user_defined_token_is_found_in_any_text():
    small = codec(pairs(token_type=[1] * 258 + [4, 3, 3]))

    assert shown(small, small.encode("xhell")) == ["x", "hell"]
    assert not small.is_special(258)
    assert 258 in small.special_ids


def test_a_token_that_ends_turns_is_control_whatever_the_converter_called_it():
    small = codec(pairs(tokens=[*BYTES, "he", "ll", "hell", "<s>", "<|eot_id|>"], token_type=[1] * 261))

    assert 260 not in small.encode("he<|eot_id|>")
    assert small.encode_prompt("he<|eot_id|>")[-1] == 260
    assert 260 in small.end_ids


@pytest.mark.parametrize(
    ("pre", "keys", "ids"),
    [
        ("gpt-2", {}, [256]),
        ("gpt-2", {"add_bos_token": True}, [259, 256]),
        ("gpt-2", {"add_bos_token": True, "add_eos_token": True}, [259, 256, 260]),
        ("llama-bpe", {}, [259, 256]),
        ("llama-bpe", {"add_bos_token": False}, [256]),
        ("tekken", {}, [259, 256]),
    ],
)
def test_bos_and_eos_go_around_a_prompt_as_the_file_or_its_cut_says(pre, keys, ids):
    small = codec(pairs(pre=pre, **keys))

    assert small.encode_prompt("he") == tuple(ids)
    assert small.encode_prompt("he", add_special_tokens=False) == (256,)


def test_a_piece_that_is_a_token_is_not_merged_where_the_cut_says_so():
    # "hell" is a token, but without its merge only a whole word is.
    unmerged = {"merges": ["h e", "l l"]}

    assert shown(codec(pairs(pre="llama-bpe", **unmerged)), (258,)) == ["hell"]
    assert codec(pairs(pre="llama-bpe", **unmerged)).encode("hell") == (258,)
    assert codec(pairs(pre="gpt-2", **unmerged)).encode("hell") == (256, 257)


def test_the_piece_of_the_highest_score_merges_first_and_bytes_stand_in_for_the_rest():
    small = codec(scored())

    assert shown(small, small.encode("ab")) == ["\u2581", "ab"]
    assert shown(small, small.encode("a\u00e9")) == ["\u2581a", "<0xC3>", "<0xA9>"]
    assert small.decode(small.encode("ab a")) == "ab a"


def test_a_space_goes_before_text_at_the_start_and_after_each_special_token():
    small = codec(scored())

    assert shown(small, small.encode_prompt("a<|user|>a")) == ["<s>", "\u2581a", "<|user|>", "\u2581a"]
    bare = codec(scored(add_space_prefix=False))
    assert shown(bare, bare.encode_prompt("a<|user|>a")) == ["<s>", "a", "<|user|>", "a"]


def test_the_special_tokens_of_phi_3_take_the_white_space_after_them():
    phi = codec(scored() | {"general.name": "Phi3 Mini"})

    assert shown(phi, phi.encode_prompt("<|user|> \n b"))[1:] == ["<|user|>", "\u2581", "b"]


def test_control_tokens_of_scored_vocabularies_are_not_made_of_text():
    merging = scored(
        tokens=["<unk>", "<s>", "</s>", *FALLBACK, "<", "s", ">", "<s", "\u2581", "x"],
        scores=[0.0] * 259 + [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0],
        token_type=[2, 3, 3] + [6] * 256 + [1] * 6,
    )

    assert 1 not in codec(merging).encode("x<s>x")


def test_a_unigram_vocabulary_takes_the_likeliest_pieces_and_never_a_control_token_of_text():
    small = codec(unigram())

    assert shown(small, small.encode("ab a")) == ["\u2581", "ab", "\u2581a"]
    assert shown(small, small.encode("a</s>")) == ["\u2581a", "<", "/", "s", ">"]
    assert small.encode_prompt("a") == (*small.encode("a"), 1)
    assert small.decode(small.encode("ab a")) == "ab a"


@pytest.mark.parametrize("table", [[1, 2, 3], ["x"]])
def test_a_table_of_replacements_that_is_none_is_refused(table):
    with pytest.raises(ModelError, match="precompiled_charsmap"):
        codec(unigram(precompiled_charsmap=table))


def unigram(**changes: Any) -> dict[str, Any]:
    """The metadata of a small unigram vocabulary."""
    pieces = {"\u2581": -2.0, "a": -4.0, "b": -5.0, "\u2581a": -1.0, "ab": -1.5}
    signs = dict.fromkeys("</s>", -6.0)
    metadata = {
        "model": "t5",
        "tokens": ["<pad>", "</s>", "<unk>", *pieces, *signs],
        "scores": [0.0, 0.0, 0.0, *pieces.values(), *signs.values()],
        "token_type": [3, 3, 2] + [1] * 9,
        "add_space_prefix": True,
    } | changes
    return {f"tokenizer.ggml.{key}": value for key, value in metadata.items()}


def test_named_templates_are_all_there():
    metadata = pairs() | {
        "tokenizer.chat_template": "plain",
        "tokenizer.chat_templates": ["tool_use", "absent"],
        "tokenizer.chat_template.tool_use": "with tools",
    }

    assert codec(metadata).template == "plain"
    assert codec(metadata).tool_template == "with tools"
    assert codec(pairs()).template is None


def test_an_empty_token_gets_the_name_that_llama_cpp_gives_it():
    small = codec(pairs(tokens=[*BYTES, "he", "ll", "hell", "<s>", ""]))

    assert small.tokens()[260] == "[EMPTY_260]"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": None}, "tokenizer.ggml.model is missing"),
        ({"model": "rwkv"}, "tokenizer.ggml.model is 'rwkv'; gpt2, llama, gemma4, bert, t5 are read"),
        ({"model": 3}, "tokenizer.ggml.model is a int"),
        ({"pre": "of-tomorrow"}, "tokenizer.ggml.pre is 'of-tomorrow', a cut that is not known"),
        ({"tokens": None}, "tokenizer.ggml.tokens is missing"),
        ({"tokens": [*BYTES, "he", "ll", "he", "<s>", "</s>"]}, "tokenizer.ggml.tokens holds 'he' twice"),
        ({"tokens": [1, 2]}, "tokenizer.ggml.tokens holds values of a wrong kind"),
        ({"merges": None}, "tokenizer.ggml.merges is missing"),
        (
            {"merges": ["h e", "x y"]},
            "tokenizer.ggml.merges does not fit the tokens (Error while initializing BPE: Token `x",
        ),
        ({"merges": ["he"]}, "tokenizer.ggml.merges holds 'he', which is no pair"),
        ({"token_type": [1]}, "tokenizer.ggml.token_type holds 1 values for 261 tokens"),
        ({"bos_token_id": 261}, "tokenizer.ggml.bos_token_id is 261, no ID of the 261 tokens"),
        ({"eos_token_id": "x"}, "tokenizer.ggml.eos_token_id is 'x'"),
        ({"add_bos_token": 1}, "tokenizer.ggml.add_bos_token is 1, no truth value"),
        ({"bos_token_id": None, "add_bos_token": True}, "needs a bos_token and does not say which"),
    ],
)
def test_a_contradiction_names_the_file_the_key_and_a_remedy(changes, problem):
    with pytest.raises(ModelError) as raised:
        codec(pairs(**changes))
    assert problem in raised.value.message
    assert raised.value.where == "model.gguf"
    assert raised.value.remedy


def test_a_scored_vocabulary_without_scores_is_refused():
    with pytest.raises(ModelError, match="scores is missing"):
        codec(scored(scores=None))


def test_a_small_vocabulary_of_words_without_its_unknown_token_is_refused():
    with pytest.raises(ModelError, match="needs a unk_token"):
        codec(
            pairs(
                model="bert", merges=None, tokens=["\u2581a"], token_type=[1], bos_token_id=0, eos_token_id=0
            )
        )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file of `pairs` with the bytes it holds."""
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in pairs(add_bos_token=True).items():
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string}[type(value)](key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path, path.read_bytes()


def test_a_written_file_is_read_as_its_metadata(written):
    path, _ = written
    assert open_tokenizer(path).encode_prompt("hello</s>") == codec(pairs(add_bos_token=True)).encode_prompt(
        "hello</s>"
    )


@settings(max_examples=150)
@given(st.data())
def test_a_damaged_file_gives_a_tokenizer_or_a_clear_error(written, data):
    path, whole = written
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] = data.draw(st.integers(0, 255))
    broken = path.with_name("broken.gguf")
    broken.write_bytes(damaged)

    assert outcome(broken) in {261, str(broken)}


def outcome(path: Path) -> int | str | None:
    """The size of the vocabulary, or the place that the error names."""
    try:
        return open_tokenizer(path).vocabulary_size
    except ModelError as error:
        return error.where
