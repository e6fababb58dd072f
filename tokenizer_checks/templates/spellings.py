"""One chat as it travels, and as a template may be given it.

The OpenAI API writes the arguments of earlier calls as JSON text, templates are
written for objects, and servers turn the one into the other. Content in typed
parts reaches a template as a list, or joined to one text where the template
knows no lists: vLLM does so with line breaks between the parts, others with
nothing. A developer's message is a system message to a template that does not
know that role. (vLLM 0.32: ``renderers/chat_utils.py``, ``renderers/hf.py``.)
Servers that read a request into typed records write a tool's own keys in the
order of the record, and drop those that it lacks; keys inside its parameters stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tokenizer_checks.templates.chat import Chat, Message

DEVELOPER = "developer"
_KEYS = ("name", "description", "parameters", "strict")  # of vLLM's and of OpenAI's ``FunctionDefinition``


def on_wire(chat: Chat) -> Chat:
    """Return the chat as a request carries it: arguments of calls as JSON text, keys in their order."""
    return _each(chat, lambda message: _each_call(message, _as_text))


def as_rendered(chat: Chat, template: str | None = None) -> tuple[Chat, ...]:
    """Return the ways in which an honest server may hand the chat to its template, the usual one first.

    Arguments of calls are objects in all of them; text that is no JSON object
    stays text. A chat without typed text, without a developer's message that
    ``template`` does not know, and with the keys of its tools in order, has one way.
    """
    usual = _each(chat, lambda message: _each_call(message, _as_object))
    knows = template is None or DEVELOPER in template
    ways = [usual] if knows else [usual, _with_system(usual)]
    ways = [spelt for way in ways for spelt in (way, *_joined_ways(way))]
    return tuple(_distinct([*ways, *map(_with_tools_in_order, ways)]))


def _joined_ways(chat: Chat) -> tuple[Chat, Chat]:
    return _all_joined(chat, "\n"), _all_joined(chat, "")


def _all_joined(chat: Chat, between: str) -> Chat:
    return _each(chat, lambda message: _joined(message, between))


def _with_system(chat: Chat) -> Chat:
    """Return the chat with its developer's messages as the system's, all of them in one at the front."""
    if not any(message.get("role") == DEVELOPER for message in chat.messages):
        return chat
    told = [message for message in chat.messages if message.get("role") in (DEVELOPER, "system")]
    others = [message for message in chat.messages if message not in told]
    if len(told) == 1 and chat.messages[0] == told[0]:
        return replace(chat, messages=({**told[0], "role": "system"}, *others))
    texts = [_joined(message, "\n").get("content") for message in told]
    merged = "\n\n".join(text for text in texts if isinstance(text, str) and text)
    return replace(chat, messages=({"role": "system", "content": merged}, *others))


def _with_tools_in_order(chat: Chat) -> Chat:
    return replace(chat, tools=tuple(map(_in_order, chat.tools))) if chat.tools else chat


def _in_order(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return tool
    ordered = {key: function[key] for key in _KEYS if function.get(key) is not None}
    return {"type": tool.get("type", "function"), "function": ordered}


def _each(chat: Chat, change: Callable[[Message], Message]) -> Chat:
    return replace(chat, messages=tuple(change(message) for message in chat.messages))


def _each_call(message: Message, change: Callable[[Any], Any]) -> Message:
    calls = message.get("tool_calls")
    if not isinstance(calls, (list, tuple)):
        return message
    return {**message, "tool_calls": [_with_arguments(call, change) for call in calls]}


def _with_arguments(call: Any, change: Callable[[Any], Any]) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or "arguments" not in function:
        return call
    return {**call, "function": {**function, "arguments": change(function["arguments"])}}


def _as_text(arguments: Any) -> Any:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _as_object(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        read = json.loads(arguments)
    except ValueError:
        return arguments
    return read if isinstance(read, dict) else arguments


def _joined(message: Message, between: str) -> Message:
    content = message.get("content")
    if not isinstance(content, (list, tuple)) or not all(map(_is_text, content)):
        return message
    return {**message, "content": between.join(part["text"] for part in content)}


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _distinct(chats: list[Chat]) -> list[Chat]:
    # Two chats are equal whatever the order of their keys, and that is what differs here.
    return list({json.dumps(_spelt(chat), ensure_ascii=False): chat for chat in reversed(chats)}.values())[
        ::-1
    ]


def _spelt(chat: Chat) -> list[object]:
    return [chat.messages, chat.tools, chat.options]
