"""Markers of each family that must never show in what a client reads.

Source: the same as of the family's parser beside this file. Left out are marks
that ordinary text holds as well: ``[ARGS]`` stays, a bare brace or fence doesn't.
"""

# ruff: noqa: RUF001 - the models' own signs

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_THINK = ("<think>", "</think>")
_CHATML = ("<|im_start|>", "<|im_end|>")
_TAGS = ("<tool_call>", "</tool_call>")

LEAKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "hermes": (*_TAGS, *_CHATML, *_THINK, "<scratch_pad>", "</scratch_pad>"),
        "qwen": (*_TAGS, *_CHATML, *_THINK, "<function=", "</function>", "<parameter=", "</parameter>"),
        "kimi": (
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<|im_assistant|>",
            "<|im_user|>",
            "<|im_system|>",
            "<|im_middle|>",
            "<|im_end|>",
            *_THINK,
        ),
        "deepseek": (
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁outputs▁begin｜>",
            "<｜tool▁outputs▁end｜>",
            "<｜DSML｜",
            "</｜DSML｜",
            "<｜User｜>",
            "<｜Assistant｜>",
            "<｜begin▁of▁sentence｜>",
            "<｜end▁of▁sentence｜>",
            *_THINK,
        ),
        "glm": (
            *_TAGS,
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
            "<|observation|>",
            "<|user|>",
            "<|assistant|>",
            *_THINK,
        ),
        "mistral": ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[TOOL_RESULTS]", "[THINK]", "[/THINK]"),
        "llama": (
            "<|python_tag|>",
            "<|python_start|>",
            "<|python_end|>",
            "<|eom_id|>",
            "<|eot_id|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|header_start|>",
            "<|header_end|>",
            "<|eom|>",
            "<|eot|>",
        ),
        "harmony": (
            "<|start|>",
            "<|channel|>",
            "<|constrain|>",
            "<|message|>",
            "<|end|>",
            "<|call|>",
            "<|return|>",
        ),
        "minimax": (
            "<minimax:tool_call>",
            "</minimax:tool_call>",
            "<invoke name=",
            "</invoke>",
            "]~b]",
            "[e~[",
            *_THINK,
        ),
    }
)
"""By family: hermes, qwen, kimi, deepseek, glm, mistral, llama, harmony, minimax."""
