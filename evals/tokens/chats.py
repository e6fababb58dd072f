"""The chats whose token IDs are compared: ones that show every layer, all there are, or the user's own."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from ringtrue.errors import UsageError
from ringtrue.payload import from_body
from ringtrue.records import Request, Sampling
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.fixtures import fixtures

FEW = (
    "one_user",
    "no_generation_prompt",
    "system",
    "empty_system",
    "two_turns",
    "prefill",
    "thinking_off",
    "one_tool_without",
    "one_tool",
    "tool_unsorted_keys",
    "tool_sorted_keys",
    "tool_html",
    "tool_round_trip",
    "reasoning_history",
    "trailing_space_stripped",
    "trailing_space",
    "unicode_scripts",
    "digits",
    "words",
)
"""A handful that touches every layer, and has both sides of each relation."""

MARKED, UNMARKED = "marker_literal", "marker_left_out"


@dataclass(frozen=True, slots=True)
class NamedChat:
    """A chat with the name by which the report speaks of it."""

    name: str
    chat: Chat

    @property
    def request(self) -> Request:
        """What asking for it costs is that of this request: its messages and tools, for one token."""
        sampling = Sampling(temperature=0.0, max_tokens=1)
        return Request(self.name, messages=self.chat.messages, tools=self.chat.tools, sampling=sampling)


def known_chats(marker: str | None = None) -> Mapping[str, Chat]:
    """Return all chats that come with ringtrue, by name, in order.

    Beside the fixtures stand the other sides of relations: the same chat
    without its tools, with their keys sorted, or with its last space stripped;
    and with ``marker``, a control token's text, one that holds it as plain
    text of a user and one that does not.
    """
    held = {fixture.name: fixture.chat for fixture in fixtures()}
    held["one_tool_without"] = replace(held["one_tool"], tools=None)
    tools = held["tool_unsorted_keys"].tools or ()
    held["tool_sorted_keys"] = replace(held["tool_unsorted_keys"], tools=tuple(map(_sorted, tools)))
    spaced = held["trailing_space"].messages[0]
    stripped = {**spaced, "content": spaced["content"].rstrip()}
    held["trailing_space_stripped"] = replace(held["trailing_space"], messages=(stripped,))
    if marker is not None:
        held[UNMARKED] = _user("What does this mean: nothing?")
        held[MARKED] = _user(f"What does this mean: {marker}?")
    return held


def choose_chats(
    names: Sequence[str], *, everything: bool = False, marker: str | None = None
) -> tuple[NamedChat, ...]:
    """Return the chats of these names, or all, or the few that show every layer.

    Raises:
        UsageError: there is no chat of a name.
    """
    held = known_chats(marker)
    for name in names:
        if name not in held:
            close = difflib.get_close_matches(name, held, n=1)
            remedy = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(held)}"
            raise UsageError(f"no chat is named {name!r}", where="--chat", remedy=remedy)
    few = [*FEW, *(name for name in (UNMARKED, MARKED) if name in held)]
    chosen = list(held) if everything else names or few
    return tuple(NamedChat(name, held[name]) for name in dict.fromkeys(chosen))


def read_chats(path: Path) -> tuple[NamedChat, ...]:
    """Return the chats of a file of whole chat requests, one JSON object a line, or of recorded exchanges.

    Raises:
        UsageError: the file can't be read, a line is no chat, or there is none.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    read = [_read(line, f"{path}:{at}") for at, line in enumerate(lines, start=1) if line.strip()]
    if not read:
        raise UsageError("holds no chat", where=str(path), remedy="Write one chat request a line")
    return tuple(read)


def chat_of(request: Request) -> Chat | None:
    """Return the chat of a request, with the switches that vLLM and SGLang know; ``None`` if it is none."""
    if request.messages is None:
        return None
    options = request.extra.get("chat_template_kwargs")
    return Chat(
        request.messages,
        request.tools,
        generation_prompt=request.extra.get("add_generation_prompt", True) is not False,
        continue_final=request.extra.get("continue_final_message") is True,
        options=options if isinstance(options, dict) else {},
    )


def _read(line: bytes, where: str) -> NamedChat:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error}", where=where) from error
    body = row.get("request", row) if isinstance(row, dict) else None
    if not isinstance(body, dict) or not _is_chat(body):
        raise UsageError(
            "not a chat request", where=where, remedy='A line is {"messages": [...], "tools": [...]}'
        )
    chat = chat_of(from_body("", body))
    if chat is None:
        raise UsageError("holds no messages", where=where)
    return NamedChat(str(row.get("id") or where), chat)


def _is_chat(body: Mapping[str, Any]) -> bool:
    messages, tools = body.get("messages"), body.get("tools")
    if not isinstance(messages, list) or not messages or not isinstance(tools, (list, type(None))):
        return False
    return all(isinstance(part, dict) for part in [*messages, *(tools or [])])


def _user(text: str) -> Chat:
    return Chat(({"role": "user", "content": text},))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
