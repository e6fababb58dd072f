from __future__ import annotations

import pytest

from reference_engine.models.codec import TokenCodec
from reference_engine.server.tool_calls.template import TOOLS_TEMPLATE, chat_template, shown_in
from ringtrue.errors import UsageError
from tests.small_models import byte_level_tokenizer

TOOL = {"type": "function", "function": {"name": "f", "description": 'Says "<a>".'}}
USER = {"role": "user", "content": "Use f."}


@pytest.fixture(scope="module")
def codec():
    return TokenCodec(byte_level_tokenizer()).with_template(TOOLS_TEMPLATE)


@pytest.mark.parametrize("system", [[], [{"role": "system", "content": "Be kind."}]])
def test_a_rendered_chat_shows_its_tools_and_what_was_said(codec, system):
    prompt = codec.render_text([*system, USER], [TOOL])
    shown = shown_in(prompt)
    assert (shown.tools, shown.said) == ((TOOL,), "Use f.")
    assert prompt.count("Be kind.") == len(system)


def test_a_chat_without_tools_shows_none(codec):
    prompt = codec.render_text([USER])
    assert prompt == "<|im_start|>user\nUse f.<|im_end|>\n<|im_start|>assistant\n"
    assert shown_in(prompt) is None


def test_calls_and_results_are_rendered_and_ask_for_nothing(codec):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    turns = [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "7"},
    ]
    prompt = codec.render_text(turns, [TOOL])
    assert '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>' in prompt
    assert "<|im_start|>tool\n7<|im_end|>" in prompt
    assert shown_in(prompt).said == ""


def test_arguments_may_be_an_object(codec):
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    prompt = codec.render_text([USER, {"role": "assistant", "content": "", "tool_calls": [call]}], [TOOL])
    assert '"arguments": {"a": 1}}' in prompt


def test_a_prompt_that_waits_for_no_answer_shows_nothing(codec):
    assert shown_in(codec.render_text([USER], [TOOL], generation_prompt=False)) is None


@pytest.mark.parametrize("lines", ["no json", "[1]", "3"])
def test_other_text_between_the_tags_shows_nothing(lines):
    prompt = f"<|im_start|>system\n<tools>\n{lines}\n</tools><|im_end|>\n<|im_start|>assistant\n"
    assert shown_in(prompt) is None


def test_the_tokenizer_that_a_template_was_taken_from_stays_as_it_is():
    own = TokenCodec(byte_level_tokenizer())
    before = own.render_text([USER])
    own.with_template(TOOLS_TEMPLATE)
    assert own.render_text([USER]) == before


def test_a_template_is_named_or_read_from_a_file(tmp_path):
    path = tmp_path / "own.jinja"
    path.write_text("{{ messages[0].content }}")
    assert chat_template("tools") == TOOLS_TEMPLATE
    assert chat_template(str(path)) == "{{ messages[0].content }}"
    with pytest.raises(UsageError, match="cannot be read"):
        chat_template(str(tmp_path / "none.jinja"))
