from datetime import UTC, datetime

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from reference_engine.models.codec import TokenCodec
from ringtrue.errors import ModelError
from tests.small_models import byte_level_tokenizer

NEW_YEARS_EVE = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)
TEXTS = ["hello", "héllo wörld", "中文🎉\u200d", "a\r\n\t  b", "\x00\x7f", "1234567"]


@pytest.fixture
def sentencepiece_codec() -> TokenCodec:
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "a", "b", "\u2581a"]
    backend = Tokenizer(
        models.BPE(
            vocab={piece: i for i, piece in enumerate(pieces)},
            merges=[("\u2581", "a")],
            unk_token="<unk>",
            byte_fallback=True,
        )
    )
    backend.normalizer = normalizers.Replace(" ", "\u2581")
    backend.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return TokenCodec(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>"))


@pytest.mark.parametrize("text", TEXTS)
def test_byte_level_tokens_are_the_bytes_of_the_text(byte_codec, text):
    assert b"".join(map(byte_codec.token_bytes, byte_codec.encode(text))) == text.encode()


@pytest.mark.parametrize("text", [" a b", "a é", "\n"])
def test_sentencepiece_tokens_are_the_bytes_of_the_text(sentencepiece_codec, text):
    ids = sentencepiece_codec.encode(text)
    assert b"".join(map(sentencepiece_codec.token_bytes, ids)) == text.encode()


def test_a_control_token_stands_for_its_own_text(byte_codec):
    assert byte_codec.token_bytes(byte_codec.bos_id) == b"<s>"
    assert byte_codec.is_special(byte_codec.bos_id)


def test_an_id_the_tokenizer_does_not_use_has_no_bytes(byte_codec):
    assert byte_codec.token_bytes(10_000) == b""


def test_encode_keeps_special_tokens_as_text_and_a_prompt_does_not(byte_codec):
    assert byte_codec.bos_id not in byte_codec.encode("<s>x")
    assert byte_codec.encode_prompt("<s>x")[0] == byte_codec.bos_id


@pytest.mark.parametrize("text", TEXTS)
def test_decode_reverses_encode(byte_codec, text):
    assert byte_codec.decode(byte_codec.encode(text)) == text


def test_a_chat_is_rendered_by_the_template_with_its_generation_prompt(byte_codec):
    chat = [{"role": "user", "content": "hi"}]
    assert byte_codec.decode(byte_codec.render(chat)) == (
        "<s>system\nBe kind.</s><s>user\nhi</s><s>assistant\n"
    )
    assert byte_codec.decode(byte_codec.render(chat, generation_prompt=False)).endswith("hi</s>")


def test_messages_the_template_cannot_take_are_a_clear_error(byte_codec):
    with pytest.raises(ModelError, match="without messages"):
        byte_codec.render([])


def test_a_template_that_raises_is_a_clear_error(byte_codec):
    refusing = byte_codec.with_template("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(ModelError, match="refused the chat: roles must alternate"):
        refusing.render([{"role": "user", "content": "hi"}])


def test_a_template_without_an_end_is_a_clear_error(byte_codec):
    endless = byte_codec.with_template("{% for i in range(10**9) %}{{ i }}{% endfor %}")
    with pytest.raises(ModelError, match="chat template"):
        endless.render([{"role": "user", "content": "hi"}])


def test_the_day_that_a_template_writes_is_the_one_that_was_given(byte_codec):
    dated = byte_codec.with_template("{{ strftime_now('%d %b %Y') }}")
    text = dated.render_text([{"role": "user", "content": "hi"}], now=NEW_YEARS_EVE)
    assert text == "31 Dec 2026"


def test_a_request_with_tools_is_rendered_by_the_template_for_tools():
    tokenizer = byte_level_tokenizer()
    tokenizer.chat_template = {"default": "plain", "tool_use": "with tools"}
    codec = TokenCodec(tokenizer)
    assert codec.render_text([{"role": "user", "content": "hi"}]) == "plain"
    assert codec.render_text([{"role": "user", "content": "hi"}], [{"type": "function"}]) == "with tools"


def test_special_ids_are_those_of_control_tokens_and_the_end_is_one_of_them(byte_codec):
    assert {byte_codec.bos_id, byte_codec.eos_id} <= byte_codec.special_ids
    assert byte_codec.end_ids == {byte_codec.eos_id}
    assert byte_codec.special_tokens["bos_token"] == "<s>"
    assert max(byte_codec.tokens()) == byte_codec.vocabulary_size - 1


def test_a_turn_may_end_with_another_token_than_an_answer():
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_end|>"]})
    codec = TokenCodec(tokenizer)
    assert codec.end_ids == {codec.eos_id, tokenizer.convert_tokens_to_ids("<|im_end|>")}


def test_a_model_without_a_template_says_so(sentencepiece_codec):
    with pytest.raises(ModelError, match="no chat template"):
        sentencepiece_codec.render([{"role": "user", "content": "hi"}])


def test_the_vocabulary_hash_covers_tokens_and_their_ids_alone(byte_codec, sentencepiece_codec):
    assert byte_codec.vocabulary_hash() != sentencepiece_codec.vocabulary_hash()
    assert byte_codec.vocabulary_hash() == TokenCodec(byte_level_tokenizer(template=None)).vocabulary_hash()


def test_the_template_hash_covers_the_template_alone(byte_codec, sentencepiece_codec):
    assert byte_codec.template_hash() == TokenCodec(byte_level_tokenizer()).template_hash()
    assert byte_codec.template_hash() != TokenCodec(byte_level_tokenizer("{{ 1 }}")).template_hash()
    assert sentencepiece_codec.template_hash() is None
