"""Faults of the tools offered: left out, reordered, or written in another JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tokenizer_checks.blame import Layer
from tokenizer_checks.templates.chat import JsonStyle, Prompt
from tokenizer_checks.templates.mutators.messages import each_tool
from tokenizer_checks.templates.mutators.mutator import Mutator

_HARMONY = re.compile(r"(# Instructions\n.*?)(# Tools\n.*?)(?=<\|end\|>)", re.DOTALL)


def _tools_dropped(prompt: Prompt) -> Prompt:
    return replace(prompt, chat=replace(prompt.chat, tools=None))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _of_function(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Any], Any]:
    return lambda tool: {**tool, "function": change(tool["function"])} if "function" in tool else tool


def _description_first(function: dict[str, Any]) -> dict[str, Any]:
    first = {"description": function["description"]} if "description" in function else {}
    return {**first, **{key: value for key, value in function.items() if key != "description"}}


def _strict(function: dict[str, Any]) -> dict[str, Any]:
    return {**function, "strict": False}


def _styled(style: JsonStyle) -> Callable[[Prompt], Prompt]:
    return lambda prompt: replace(prompt, dialect=replace(prompt.dialect, json=style))


def _sections_swapped(_: Prompt, text: str) -> str:
    return _HARMONY.sub(lambda match: f"{match[2].rstrip()}\n\n{match[1].rstrip()}", text)


TOOLS = (
    Mutator(
        "tools_dropped",
        Layer.TOOLS,
        "mlxcel#205",
        "the engine lacks tojson, and the tools are left out",
        prompt=_tools_dropped,
    ),
    Mutator(
        "tool_keys_sorted",
        Layer.TOOLS,
        "dynamo#10624",
        "the keys of the tools are sorted",
        prompt=each_tool(_sorted),
    ),
    Mutator(
        "tool_json_compact",
        Layer.TOOLS,
        "dynamo#10624",
        "JSON without spaces behind commas and colons",
        prompt=_styled(JsonStyle(compact=True)),
    ),
    Mutator(
        "tool_json_html",
        Layer.TOOLS,
        "dynamo#10624",
        "JSON with HTML's characters escaped",
        prompt=_styled(JsonStyle(escape_html=True)),
    ),
    Mutator(
        "tool_json_slashes",
        Layer.TOOLS,
        "swift-jinja#71",
        "JSON with slashes escaped",
        prompt=_styled(JsonStyle(escape_slashes=True)),
    ),
    Mutator(
        "tool_json_ascii",
        Layer.TOOLS,
        "swift-jinja#71",
        "JSON with dashes, and all else beyond ASCII, escaped",
        prompt=_styled(JsonStyle(ascii_only=True)),
    ),
    Mutator(
        "tool_description_first",
        Layer.TOOLS,
        "sglang#39616",
        "the description of a tool stands before its name",
        prompt=each_tool(_of_function(_description_first)),
    ),
    Mutator(
        "tool_strict_injected",
        Layer.TOOLS,
        "AReaL#1499",
        "strict: false is added to every tool",
        prompt=each_tool(_of_function(_strict)),
    ),
    Mutator(
        "tool_section_moved",
        Layer.TOOLS,
        "vllm-mlx#568",
        "the sections of Harmony's developer message stand in another order",
        text=_sections_swapped,
    ),
)
