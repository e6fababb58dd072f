"""Logprobs as servers spell them, turned into positions.

Identity follows docs/methods.md, "Hygiene": an explicit ID first, then bytes,
then the string. With ``return_tokens_as_token_ids`` vLLM names a token
``token_id:60``, and the ``bytes`` of an alternative are those of that name:
such bytes are dropped (those of the sampled token are its own, and stay).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ringtrue.records import Position, TokenLogprob

_NAMED_ID = re.compile(r"token_id:(\d+)\Z")


def chat_positions(logprobs: object) -> tuple[Position, ...]:
    """Positions of ``choices[].logprobs`` on the chat route, in the server's order."""
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return tuple(_chat_position(entry) for entry in _mappings(content))


def completion_positions(logprobs: object) -> tuple[Position | None, ...]:
    """Positions of the completions route's four parallel lists.

    The first position of an echoed prompt has no logprob and is ``None``.
    """
    if not isinstance(logprobs, Mapping):
        return ()
    tokens = _list(logprobs.get("tokens"))
    values = _list(logprobs.get("token_logprobs"))
    tops = _list(logprobs.get("top_logprobs"))
    return tuple(
        _completion_position(token, value, tops[at] if at < len(tops) else None)
        for at, (token, value) in enumerate(zip(tokens, values, strict=False))
    )


def prompt_positions(entries: object, prompt_ids: Sequence[int] | None) -> tuple[Position | None, ...] | None:
    """Positions of vLLM's ``prompt_logprobs``: ``{id: {logprob, rank, decoded_token}}`` or null.

    The token that stands in the prompt is found by ``prompt_ids``; without
    them it is the first entry, where vLLM puts it.
    """
    if not isinstance(entries, list):
        return None
    positions: list[Position | None] = []
    for at, entry in enumerate(entries):
        top = (
            tuple(_prompt_token(key, value) for key, value in entry.items())
            if isinstance(entry, dict)
            else ()
        )
        if not top:
            positions.append(None)
            continue
        here = prompt_ids[at] if prompt_ids is not None and at < len(prompt_ids) else None
        positions.append(Position(next((token for token in top if token.token_id == here), top[0]), top))
    return tuple(positions)


def _chat_position(entry: Mapping[str, Any]) -> Position:
    return Position(_chat_token(entry), tuple(map(_chat_token, _mappings(entry.get("top_logprobs")))))


def _chat_token(entry: Mapping[str, Any]) -> TokenLogprob:
    token = entry.get("token")
    text = token if isinstance(token, str) else ""
    named = named_id(text)
    given = entry.get("id", entry.get("token_id"))
    token_id = named if named is not None else given if type(given) is int else None
    return TokenLogprob(
        text,
        _number(entry.get("logprob")),
        token_id,
        _bytes(entry.get("bytes"), lie=text.encode() if named is not None else None),
    )


def _completion_position(token: object, value: object, top: object) -> Position | None:
    if value is None:
        return None
    alternatives = top.items() if isinstance(top, dict) else ()
    return Position(
        _named_token(token, value), tuple(_named_token(name, logprob) for name, logprob in alternatives)
    )


def _named_token(token: object, value: object) -> TokenLogprob:
    text = token if isinstance(token, str) else ""
    return TokenLogprob(text, _number(value), named_id(text))


def _prompt_token(key: str, value: object) -> TokenLogprob:
    fields = value if isinstance(value, Mapping) else {}
    decoded = fields.get("decoded_token")
    return TokenLogprob(
        decoded if isinstance(decoded, str) else "",
        _number(fields.get("logprob")),
        int(key) if key.isdecimal() else None,
    )


def named_id(token: str) -> int | None:
    """The ID in a token spelled ``token_id:N``, ``None`` for any other token."""
    match = _NAMED_ID.match(token)
    return int(match[1]) if match else None


def _number(value: object) -> float:
    """A logprob as received. Null is what JSON writers make of NaN, and becomes NaN again."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _bytes(value: object, *, lie: bytes | None) -> bytes | None:
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item < 256 for item in value):
        return None
    given = bytes(value)
    return None if given == lie else given


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    return (item for item in _list(value) if isinstance(item, Mapping))
