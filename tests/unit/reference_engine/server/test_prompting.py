import pytest
from transformers import PreTrainedTokenizerFast

from reference_engine.models.codec import TokenCodec
from reference_engine.server.faults import Faults
from reference_engine.server.prompting import chat_ids, completion_ids, cut_context, require_breakable
from ringtrue.errors import ModelError
from tokenizer_checks.templates.chat import Chat

CHAT = [{"role": "user", "content": "hi"}]
HONEST = Faults()


def _text(codec, faults, messages=CHAT):
    return codec.decode(chat_ids(codec, Chat(tuple(messages)), faults))


def test_without_faults_the_chat_is_the_template_s_own(byte_codec):
    assert chat_ids(byte_codec, Chat(tuple(CHAT)), HONEST) == byte_codec.render(CHAT)


def test_a_dropped_generation_prompt_is_gone_and_nothing_else(byte_codec):
    assert _text(byte_codec, Faults(drop_generation_prompt=True)) + "<s>assistant\n" == _text(
        byte_codec, HONEST
    )


def test_double_bos_adds_exactly_one_bos(byte_codec):
    doubled = chat_ids(byte_codec, Chat(tuple(CHAT)), Faults(double_bos=True))
    assert doubled == (byte_codec.bos_id, *byte_codec.render(CHAT))
    assert completion_ids(byte_codec, (5, 6), Faults(double_bos=True)) == (byte_codec.bos_id, 5, 6)


def test_a_dropped_default_system_turn_is_gone_and_nothing_else(byte_codec):
    assert _text(byte_codec, Faults(drop_default_system=True)) == "<s>user\nhi</s><s>assistant\n"


def test_a_system_message_of_the_caller_stays(byte_codec):
    chat = [{"role": "system", "content": "Be brief."}, *CHAT]
    assert _text(byte_codec, Faults(drop_default_system=True), chat) == _text(byte_codec, HONEST, chat)


def test_truncation_keeps_the_end():
    assert cut_context((1, 2, 3, 4), Faults(truncate_context=3)) == (2, 3, 4)
    assert cut_context((1, 2), Faults(truncate_context=3)) == (1, 2)


def test_a_fault_that_would_change_nothing_is_refused(byte_codec):
    plain = PreTrainedTokenizerFast(tokenizer_object=byte_codec._tokenizer.backend_tokenizer)
    plain.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    codec = TokenCodec(plain)
    require_breakable(codec, HONEST)
    for fault in ("drop_generation_prompt", "double_bos", "drop_default_system"):
        with pytest.raises(ModelError) as caught:
            require_breakable(codec, Faults(**{fault: True}))
        assert caught.value.where == fault


def test_options_and_an_open_last_message_reach_the_template(byte_codec):
    template = "{% for m in messages %}{{ m.content }}|{% endfor %}{{ mood }}"
    codec = byte_codec.with_template(template)
    moody = Chat(tuple(CHAT), options={"mood": "calm"})
    assert codec.decode(chat_ids(codec, moody, HONEST)) == "hi|calm"
    open_end = Chat((*CHAT, {"role": "assistant", "content": "Yes"}), continue_final=True)
    assert codec.decode(chat_ids(codec, open_end, HONEST)) == "hi|Yes"
