"""A chat template that shows tools to the model, and how to read them back out of a prompt."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringtrue.errors import UsageError

TOOLS = "tools"
TOOLS_TEMPLATE = """\
{%- set ns = namespace(system='', first=0) -%}
{%- if messages and messages[0].role == 'system' -%}
{%- set ns.system = messages[0].content -%}{%- set ns.first = 1 -%}
{%- endif -%}
{%- if tools or ns.system -%}
{{- '<|im_start|>system\\n' + ns.system -}}
{%- if tools -%}
{{- ('\\n\\n' if ns.system else '') + 'These functions can be called, one on each line:\\n<tools>' -}}
{%- for tool in tools -%}{{- '\\n' + (tool | tojson) -}}{%- endfor -%}
{{- '\\n</tools>\\nA call is written as one JSON object with "name" and "arguments" in tool_call tags.' -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages[ns.first:] -%}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') -}}
{%- for call in (message.tool_calls or []) -%}
{%- set function = call.function -%}
{{- '\\n<tool_call>\\n{"name": ' + (function.name | tojson) + ', "arguments": ' -}}
{{- (function.arguments if function.arguments is string else function.arguments | tojson) -}}
{{- '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
"""ChatML with the tools as JSON lines between ``<tools>`` tags, as Hermes models read them."""

_BLOCK = re.compile(r"<tools>\n(?P<lines>.*?)\n</tools>", re.DOTALL)
_TURN = re.compile(r"<\|im_start\|>(?P<role>\w+)\n(?P<text>.*?)(?:<\|im_end\|>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a rendered prompt shows: the declared tools, and the last user message (empty if none is last)."""

    tools: tuple[dict[str, Any], ...]
    said: str


def chat_template(option: str) -> str:
    """Return the template that ``--chat-template`` names: ``tools``, or a file.

    Raises:
        UsageError: the file cannot be read.
    """
    if option == TOOLS:
        return TOOLS_TEMPLATE
    try:
        return Path(option).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the chat template cannot be read: {error}", where=option, remedy="Give a file, or: tools"
        ) from error


def shown_in(prompt: str) -> Shown | None:
    """Return what a prompt shows when it is a rendered ChatML chat with tools that waits for an answer.

    The tools must stand as JSON lines between ``<tools>`` tags, and the last
    turn be an empty one of the assistant; any other text gives ``None``.
    """
    block = _BLOCK.search(prompt)
    turns = list(_TURN.finditer(prompt))
    if block is None or len(turns) < 2 or turns[-1]["role"] != "assistant" or turns[-1]["text"]:
        return None
    try:
        tools = [json.loads(line) for line in block["lines"].splitlines()]
    except ValueError:
        return None
    if not all(isinstance(tool, dict) for tool in tools):
        return None
    return Shown(tuple(tools), turns[-2]["text"] if turns[-2]["role"] == "user" else "")
