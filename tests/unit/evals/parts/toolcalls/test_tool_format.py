"""The raw format is told by what a template writes when there are tools and past calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from evals.parts.toolcalls.tool_format import detect_format, renders_tools
from ringtrue.errors import ModelError
from tests.unit.evals.parts.toolcalls.talking import Dropping, ToolReference
from tests.unit.evals.tiny import TinyReference
from toolcall_validator.families import FORMATS, RawCall, parse, render

FRAME = "<|im_start|><think></think>"  # what a template writes with tools and without


class Templated(TinyReference):
    """A template that writes past calls in one format, and refuses what it is told to."""

    def __init__(self, family: str, refuses: type[dict[str, Any]] | type[str] | None = None) -> None:
        super().__init__()
        self.family, self.refuses = family, refuses

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[int, ...]:
        text = FRAME
        for message in messages:
            for call in message.get("tool_calls", ()):
                given = call["function"]["arguments"]
                if self.refuses is not None and isinstance(given, self.refuses):
                    raise ModelError("the chat template refused the messages")
                arguments = given if isinstance(given, str) else json.dumps(given)
                text += render(self.family, [RawCall(call["function"]["name"], arguments, call["id"])])
            text += str(message["content"])
        return self.encode(text)


# Formats of one set of markers are read by the first of them; both of Llama's may write none.
READ_AS = {
    "qwen": "hermes",
    "qwen_xml": "qwen",
    "deepseek_v3": "deepseek",
    "deepseek_dsml": "deepseek",
    "mistral_list": "mistral",
    "llama": None,
    "llama_pythonic": None,
}


@pytest.mark.parametrize("family", FORMATS)
def test_each_format_is_told_by_a_past_call(family: str) -> None:
    found = detect_format(Templated(family))

    assert found == READ_AS.get(family, family)
    if found is not None:
        text = render(family, [RawCall("lookup", '{"word": "dew"}', "functions.lookup:0")])
        assert [call.name for call in parse(found, text).calls] == ["lookup"]


@pytest.mark.parametrize("refuses", [dict, str])
def test_a_template_may_want_arguments_as_an_object_or_as_text(refuses: Any) -> None:
    assert detect_format(Templated("kimi", refuses)) == "kimi"


def test_llama_4_names_its_marks_in_the_rules_for_tools() -> None:
    class Ruled(Templated):
        def render(self, messages: Any, tools: Any = None) -> tuple[int, ...]:
            rules = "<|python_start|>[f(x=1)]<|python_end|>" if tools else ""
            return (*self.encode(rules), *super().render(messages, tools))

    assert detect_format(Ruled("llama_pythonic")) == "llama_pythonic"


def test_a_template_that_writes_no_tools_tells_nothing() -> None:
    assert detect_format(Dropping()) is None
    assert detect_format(ToolReference()) == "hermes"


def test_whether_a_template_writes_tools_is_seen_in_its_ids() -> None:
    messages, tools = [{"role": "user", "content": "x"}], [{"type": "function", "function": {"name": "f"}}]

    assert renders_tools(ToolReference(), messages, tools)
    assert not renders_tools(Dropping(), messages, tools)


def test_the_embedded_models_template_writes_no_tools(reference: Any) -> None:
    messages, tools = [{"role": "user", "content": "x"}], [{"type": "function", "function": {"name": "f"}}]

    assert detect_format(reference) is None
    assert not renders_tools(reference, messages, tools)
