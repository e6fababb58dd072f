"""Faults of what was said before: calls, results, reasoning, content, and what is left out of it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from tokenizer_checks.blame import Layer
from tokenizer_checks.templates.chat import Message, Prompt
from tokenizer_checks.templates.mutators.messages import SYSTEM_ROLES, each_message, with_messages, without
from tokenizer_checks.templates.mutators.mutator import Encode, Mutator

_REPLACEMENT = "\ufffd"
_KEPT = 2  # messages that survive a full context
_FEW = 16  # tokens below which a prompt is not cut


def _calls_dropped(message: Message) -> Message:
    return without(message, "tool_calls")


def _each_call(change: Callable[[Message], Message]) -> Callable[[Message], Message]:
    def changed(message: Message) -> Message:
        calls = message.get("tool_calls")
        return {**message, "tool_calls": [change(call) for call in calls]} if calls else message

    return changed


def _arguments_as_text(call: Message) -> Message:
    function = call["function"]
    if isinstance(function["arguments"], str):
        return call
    text = json.dumps(function["arguments"], ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}


def _ids_renamed(prompt: Prompt) -> Prompt:
    """Give every call an identity of the same form, in the order of their first use."""
    names: dict[str, str] = {}

    def renamed(identity: str) -> str:
        return names.setdefault(identity, f"call{len(names):05}")

    def change(message: Message) -> Message:
        if "tool_call_id" in message:
            return {**message, "tool_call_id": renamed(message["tool_call_id"])}
        return _each_call(lambda call: {**call, "id": renamed(call["id"])} if "id" in call else call)(message)

    return with_messages(prompt, [change(message) for message in prompt.chat.messages])


def _empty_as_parts(message: Message) -> Message:
    return {**message, "content": [{"type": "text", "text": ""}]} if message.get("content") == "" else message


def _parts_emptied(message: Message) -> Message:
    return {**message, "content": ""} if isinstance(message.get("content"), list) else message


def _reasoning_dropped(message: Message) -> Message:
    return without(message, "reasoning_content", "reasoning", "thinking")


def _each_text(change: Callable[[str], str]) -> Callable[[Message], Message]:
    def changed(message: Message) -> Message:
        content: Any = message.get("content")
        return {**message, "content": change(content)} if isinstance(content, str) else message

    return changed


def _split_characters_lost(text: str) -> str:
    return "".join(_REPLACEMENT if ord(char) > 0xFFFF else char for char in text)


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _oldest_dropped(prompt: Prompt) -> Prompt:
    messages = prompt.chat.messages
    system = [message for message in messages if message.get("role") in SYSTEM_ROLES]
    rest = [message for message in messages if message.get("role") not in SYSTEM_ROLES]
    if len(rest) <= _KEPT or any("tool_call_id" in message for message in rest[-_KEPT:]):
        return prompt
    kept = rest[-_KEPT:] if rest[-_KEPT].get("role") == "user" else rest[-1:]
    return with_messages(prompt, [*system, *kept])


def _front_cut(_: Prompt, text: str, encode: Encode) -> Sequence[int]:
    ids = encode(text, parse_special=True)
    return ids if len(ids) < _FEW else ids[len(ids) // 2 :]


HISTORY = (
    Mutator(
        "tool_calls_dropped",
        Layer.HISTORY,
        "ollama#14360",
        "earlier calls of tools are left out",
        prompt=each_message(_calls_dropped),
    ),
    Mutator(
        "tool_arguments_as_text",
        Layer.HISTORY,
        "vllm.cpp#526",
        "the arguments of earlier calls reach the template as text and are quoted once more",
        prompt=each_message(_each_call(_arguments_as_text)),
    ),
    Mutator(
        "tool_ids_renamed",
        Layer.HISTORY,
        "vllm.ai, Kimi-K2: identities of earlier calls",
        "earlier calls carry other identities than the model was trained on",
        prompt=_ids_renamed,
    ),
    Mutator(
        "empty_content_as_parts",
        Layer.HISTORY,
        "vllm.ai, Kimi-K2: empty content",
        "empty content becomes a list of parts, which the template may write as a list",
        prompt=each_message(_empty_as_parts),
    ),
    Mutator(
        "reasoning_dropped",
        Layer.HISTORY,
        "vllm#21655",
        "earlier reasoning is left out before the template can decide",
        prompt=each_message(_reasoning_dropped),
    ),
    Mutator(
        "typed_content_emptied",
        Layer.CONTENT,
        "renderers#134",
        "content in typed parts becomes an empty turn",
        prompt=each_message(_parts_emptied),
    ),
    Mutator(
        "split_characters_replaced",
        Layer.CONTENT,
        "ollama#13497",
        "characters of several tokens are replaced by U+FFFD",
        prompt=each_message(_each_text(_split_characters_lost)),
    ),
    Mutator(
        "unicode_normalised",
        Layer.CONTENT,
        "llama.cpp#28845",
        "content passes a normaliser (NFKC) that the model's tokenizer does not have",
        prompt=each_message(_each_text(_normalised)),
    ),
    Mutator(
        "oldest_dropped",
        Layer.TRUNCATION,
        "ollama#14259",
        "the oldest messages are left out without a word",
        prompt=_oldest_dropped,
    ),
    Mutator(
        "front_cut",
        Layer.TRUNCATION,
        "ollama#17427",
        "only the last half of the tokens is used",
        ids=_front_cut,
    ),
)
