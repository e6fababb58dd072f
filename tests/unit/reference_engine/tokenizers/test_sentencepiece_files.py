import io
import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.tokenizers.opening import open_tokenizer
from ringtrue.errors import ModelError

WORDS = ["the", "theory", "thing", "then", "there", "in", "that", "other", "weather", "tested", "aaaa"]
WORDS += ["1234567", "\u00e9t\u00e9", "\u4f60\u597d"]
SETTINGS = {
    "unigram": {"model_type": "unigram", "byte_fallback": True},
    "unigram-without-bytes": {"model_type": "unigram"},
    "bpe": {"model_type": "bpe", "byte_fallback": True},
    "bpe-as-llama": {
        "model_type": "bpe",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "split_digits": True,
        "allow_whitespace_only_pieces": True,
    },
    "bpe-with-symbols": {
        "model_type": "bpe",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "user_defined_symbols": ["<sep>", "<turn>"],
    },
    "bpe-without-prefix": {
        "model_type": "bpe",
        "byte_fallback": True,
        "add_dummy_prefix": False,
        "normalization_rule_name": "identity",
    },
}


def trained(path: Path, **options: object) -> Path:
    """Train a real SentencePiece model on a little text."""
    chance = np.random.default_rng(3)
    lines = [" ".join(chance.choice(WORDS, 12)) for _ in range(200)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=400 if options.get("byte_fallback") else 120,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        required_chars="</s>unk",
        **options,
    )
    path.write_bytes(model.getvalue())
    return path


@pytest.fixture(scope="module", params=SETTINGS)
def model(request, tmp_path_factory):
    """The same file as we read it and as the library does."""
    path = trained(tmp_path_factory.mktemp(request.param) / "tokenizer.model", **SETTINGS[request.param])
    return open_tokenizer(path), sentencepiece.SentencePieceProcessor(model_file=str(path))


pieces = st.sampled_from(
    [
        *WORDS,
        " ",
        "  ",
        "\n",
        "\t",
        "<sep>",
        "<turn>",
        "</s>",
        "<s>",
        "<unk>",
        "x",
        ".",
        "\ufb01",
        "\u2581",
        "\U0001f389",
    ]
)


@settings(max_examples=200)
@given(st.one_of(st.text(), st.lists(pieces, max_size=20).map("".join)))
def test_every_text_has_the_ids_that_sentencepiece_gives_it(model, text):
    ours, library = model
    assert list(ours.encode(text)) == library.encode(text)


def test_special_tokens_have_the_ids_of_the_model(model):
    ours, library = model
    assert (ours.bos_id, ours.eos_id) == (library.bos_id(), library.eos_id()) == (1, 2)
    assert ours.special_tokens["unk_token"] == "<unk>"
    assert ours.vocabulary_size == library.vocab_size()
    assert {0, 1, 2} <= ours.special_ids


def test_a_control_token_is_a_token_in_a_prompt_only(model):
    ours, _ = model
    assert 2 in ours.encode_prompt("the</s>")
    assert 2 not in ours.encode("the</s>")


def test_bos_goes_before_a_prompt_where_the_configuration_says_so(tmp_path):
    trained(tmp_path / "tokenizer.model", **SETTINGS["bpe-as-llama"])
    bare = open_tokenizer(tmp_path).encode_prompt("the")

    config = {"add_bos_token": True, "add_eos_token": False, "chat_template": "{{ messages }}"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    told = open_tokenizer(tmp_path)

    assert told.encode_prompt("the") == (told.bos_id, *bare)
    assert told.template == "{{ messages }}"


def test_a_chat_template_in_its_own_file_goes_first(tmp_path):
    trained(tmp_path / "tokenizer.model", **SETTINGS["bpe"])
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "old"}')
    (tmp_path / "chat_template.jinja").write_text("new")

    assert open_tokenizer(tmp_path / "tokenizer.model").template == "new"


@pytest.mark.parametrize("content", [b"\x0a\xff\xff", b"", b"plain text of some length"])
def test_what_is_no_sentencepiece_model_is_refused(tmp_path, content):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(content)

    with pytest.raises(ModelError, match="SentencePiece") as raised:
        open_tokenizer(path)
    assert raised.value.where == str(path)


def test_a_model_of_words_is_refused(tmp_path):
    path = trained(tmp_path / "tokenizer.model", model_type="word")

    with pytest.raises(ModelError, match="words or characters"):
        open_tokenizer(path)
