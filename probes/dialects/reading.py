"""Where things stand in the JSON of an answer; whatever else stands there raises nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probes.dialects.shown import Found
from ringtrue.records import Exchange
from ringtrue.wire import SSEDecoder, parse_json


def at(value: object, *path: str | int) -> Any:
    """Return what stands at ``path`` in a JSON value, ``None`` where something else is in the way."""
    here: Any = value
    for step in path:
        if isinstance(step, str):
            here = here.get(step) if isinstance(here, dict) else None
        else:
            here = here[step] if isinstance(here, list) and len(here) > step else None
    return here


def each(value: object, step: str | int) -> object:
    """Return what stands at ``step`` in each entry of a list; anything else is given back as it is."""
    return [at(entry, step) for entry in value] if isinstance(value, list) else value


def documents(exchange: Exchange) -> list[Any]:
    """Return the JSON of an answer: one body, or the events of a stream in their order."""
    raw = b"".join(chunk.data for chunk in exchange.wire)
    value, malformed = parse_json(raw)
    if malformed is None or value is not None:
        return [value]
    decoder = SSEDecoder()
    events = [*decoder.feed(raw), *decoder.close()]
    return [value for value, _ in (parse_json(event.data) for event in events) if value is not None]


def one_list(*lists: object) -> tuple[object, str | None]:
    """Return the list that all those which are there agree on, else what is wrong in words.

    Two that differ are a problem, not a choice.
    """
    there = [one for one in lists if one is not None]
    if any(other != there[0] for other in there):
        return None, "the answer holds two lists of prompt token IDs that differ"
    return (there[0] if there else None), None


def joined(found: Sequence[Found]) -> Found:
    """Join what the events of a stream say; of a plain answer there is one."""
    ids, problem = one_list(*(one.ids for one in found))
    known = [problem, *(one.problem for one in found)]
    counts = [one.count for one in found if one.count is not None]
    texts = [one.text for one in found if one.text is not None]
    return Found(
        ids,
        counts[-1] if counts else None,
        texts[0] if texts else None,
        next((one for one in known if one is not None), None),
    )
