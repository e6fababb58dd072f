"""In which raw format a model writes its calls, told by what its own template writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringtrue.endpoint import Reference
from ringtrue.errors import ModelError
from toolcall_validator.families import LEAKS

_TOOL = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Look a word up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}
_ASKED = {"role": "user", "content": "Look up dew."}
_CALLED = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            # An object: templates write it out, and those that want text are asked a second time.
            "function": {"name": "lookup", "arguments": {"word": "dew"}},
        }
    ],
}
_CALLED_AS_TEXT = {
    **_CALLED,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": '{"word": "dew"}'}}
    ],
}
_TOLD = {"role": "tool", "tool_call_id": "call_1", "name": "lookup", "content": "water"}

# Families that share markers are told apart by those they have alone; where there are none, the
# first of these is it, and reads what the others of its markers write.
_FIRST = ("hermes", "qwen", "kimi", "deepseek", "glm", "mistral", "llama", "harmony", "minimax")


def detect_format(reference: Reference) -> str | None:
    """Return the name in ``toolcall_validator.families.FORMATS`` of the reference's format.

    The template is asked for the same chat without tools, with a tool, and
    with a past call: the markers that only tools bring tell the family.
    ``None`` where it brings none, or refuses tools: the format is then a
    setting (``[reference] tool_format``).
    """
    plain = _rendered(reference, [_ASKED], None) or ""
    texts = [
        _rendered(reference, [_ASKED], [_TOOL]),
        _rendered(reference, [_ASKED, _CALLED, _TOLD], [_TOOL]),
        _rendered(reference, [_ASKED, _CALLED_AS_TEXT, _TOLD], [_TOOL]),
    ]
    brought = "\n".join(text for text in texts if text)
    own = {
        family: sum(marker in brought and marker not in plain for marker in LEAKS[family])
        for family in _FIRST
    }
    best = max(_FIRST, key=lambda family: own[family])
    if not own[best]:
        return None
    return "llama_pythonic" if best == "llama" and "<|python_start|>" in brought else best


def renders_tools(
    reference: Reference, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> bool:
    """Tell whether the model's own template puts the tools into the prompt at all.

    Raises:
        ModelError: it refuses the messages.
    """
    return reference.render(messages, tools) != reference.render(messages)


def _rendered(
    reference: Reference, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None
) -> str | None:
    try:
        return reference.decode(reference.render(messages, tools))
    except ModelError:
        return None  # one way of writing a chat that this template does not take; there are others
