"""Streams spoiled chunk by chunk, while the plain answer stays right."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from reference_engine.server.tool_calls.scene import Scene

Chunk = dict[str, Any]
StreamFault = Callable[[list[Chunk], Scene], list[Chunk]]


def sibling_lost(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Lose the first of several calls; of a single one, count a sibling that never came."""
    several = any(entry["index"] > 0 for _, entry in _entries(chunks))
    if not several:
        return _renumbered(chunks, lambda index: index + 1)
    return [chunk for chunk in chunks if _index(chunk) != 0]


def index_reused(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Send every call on index 0; a single one twice."""
    several = any(entry["index"] > 0 for _, entry in _entries(chunks))
    sent = chunks if several else _with_copy(chunks)
    return _renumbered(sent, lambda _: 0)


def call_duplicated(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Send the first call once more, under an index and an identity of its own."""
    return _with_copy(chunks)


def name_resent(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Repeat the name in every delta of a call."""
    names: dict[int, str] = {}
    for opening, entry in _entries(chunks):
        if opening:
            names[entry["index"]] = entry["function"]["name"]
        entry["function"]["name"] = names.get(entry["index"], "")
    return chunks


def null_identity(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Send ``null`` as id and name of every continuation."""
    return _continued(chunks, None)


def empty_identity(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Send ``""`` as id and name of every continuation."""
    return _continued(chunks, "")


def null_list(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Send ``tool_calls: null`` in every delta that holds no call."""
    for chunk in chunks:
        for choice in chunk["choices"]:
            choice["delta"].setdefault("tool_calls", None)
    return chunks


def parity(chunks: list[Chunk], scene: Scene) -> list[Chunk]:
    """Lose the last sign of every call's arguments; without a call, leave a marker behind the text."""
    last = {entry["index"]: entry for opening, entry in _entries(chunks) if not opening}
    for entry in last.values():
        entry["function"]["arguments"] = entry["function"]["arguments"][:-1]
    if last or any(_index(chunk) is not None for chunk in chunks):
        return chunks
    return _before_finish(chunks, {"delta": {"content": f"\n{scene.marker}"}, "finish_reason": None})


def duplicate_finish(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Send the finish reason twice."""
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    reason = next((reason for reason in reasons if reason), "stop")
    return _before_finish(chunks, {"delta": {}, "finish_reason": reason})


def missing_usage(chunks: list[Chunk], _: Scene) -> list[Chunk]:
    """Keep the usage back that was asked for."""
    return [chunk for chunk in chunks if chunk["choices"]]


STREAM_FAULTS: dict[str, StreamFault] = {
    "stream.sibling_lost": sibling_lost,
    "stream.index_reused": index_reused,
    "stream.call_duplicated": call_duplicated,
    "stream.name_resent": name_resent,
    "stream.null_identity": null_identity,
    "stream.empty_identity": empty_identity,
    "stream.null_list": null_list,
    "stream.parity": parity,
    "finish.duplicate": duplicate_finish,
    "usage.missing": missing_usage,
}


def _entries(chunks: list[Chunk]) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Yield each delta of a call, and whether it opens the call."""
    for chunk in chunks:
        for choice in chunk["choices"]:
            for entry in choice["delta"].get("tool_calls") or ():
                yield "name" in entry["function"] and "type" in entry, entry


def _index(chunk: Chunk) -> int | None:
    return next((entry["index"] for _, entry in _entries([chunk])), None)


def _renumbered(chunks: list[Chunk], number: Callable[[int], int]) -> list[Chunk]:
    for _, entry in _entries(chunks):
        entry["index"] = number(entry["index"])
    return chunks


def _with_copy(chunks: list[Chunk]) -> list[Chunk]:
    first = copy.deepcopy([chunk for chunk in chunks if _index(chunk) == 0])
    places = [place for place, chunk in enumerate(chunks) if _index(chunk) is not None]
    if not places:
        return chunks
    free = 1 + max(entry["index"] for _, entry in _entries(chunks))
    for opening, entry in _entries(first):
        entry["index"] = free
        if opening and "id" in entry:
            entry["id"] += "_again"
    end = places[-1] + 1
    return [*chunks[:end], *first, *chunks[end:]]


def _continued(chunks: list[Chunk], value: str | None) -> list[Chunk]:
    for opening, entry in _entries(chunks):
        if not opening:
            entry["id"] = value
            entry["function"]["name"] = value
    return chunks


def _before_finish(chunks: list[Chunk], choice: dict[str, Any]) -> list[Chunk]:
    """Put a chunk before the one that ends the answer (the last that has a choice)."""
    end = max(place for place, chunk in enumerate(chunks) if chunk["choices"])
    added = {**chunks[end], "choices": [{"index": 0, "logprobs": None, **choice}]}
    return [*chunks[:end], added, *chunks[end:]]
