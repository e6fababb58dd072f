"""Which tools a message asks for: a rule of words, in place of a model that decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = frozenset(
    {"about", "after", "also", "been", "call", "called", "does", "each", "from", "function", "given", "have"}
    | {"into", "only", "other", "return", "returns", "some", "tell", "that", "them", "then", "there", "these"}
    | {"this", "tool", "tools", "want", "what", "when", "where", "which", "will", "with", "your"}
)


def words_of(text: str) -> tuple[str, ...]:
    """Return the telling words of a text, in small letters: four letters or more, and no common ones."""
    return tuple(word for word in _WORD.findall(text.lower()) if word not in _COMMON)


def tools_asked_for(text: str, descriptions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the tools that ``text`` asks for, in the order in which it names them.

    ``descriptions`` are by tool name. The rule: every tool that is named, with
    its own spelling or with spaces for its underscores; when none is named, the
    one tool whose description and name share most words with the text, if they
    share any.
    """
    spoken = text.lower()
    places = {name: place for name in descriptions if (place := _named(spoken, name.lower())) is not None}
    if places:
        return tuple(sorted(places, key=lambda name: (places[name], name)))
    said = set(words_of(text))
    shared = {
        name: len(said & set(words_of(f"{name.replace('_', ' ')} {told}")))
        for name, told in descriptions.items()
    }
    best = max(shared, key=lambda name: shared[name], default=None)
    return (best,) if best is not None and shared[best] else ()


def _named(spoken: str, name: str) -> int | None:
    if not name:
        return None
    spellings = {re.escape(name), re.escape(re.sub(r"[_.-]+", " ", name))}
    found = re.search(rf"(?<![\w])(?:{'|'.join(sorted(spellings))})(?![\w])", spoken)
    return None if found is None else found.start()


def last_said(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the last message when it is the user's, else nothing: a tool's result asks for no call."""
    last = messages[-1] if messages else {}
    content = last.get("content")
    return content if last.get("role") == "user" and isinstance(content, str) else ""


def described(tools: Iterable[Any]) -> dict[str, str]:
    """Return the descriptions of declared tools by name; what is no tool is left out."""
    found = {}
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            found[function["name"]] = str(function.get("description") or "")
    return found
