"""Names and ids of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolcall_validator.case import Case
from toolcall_validator.fault import Fault, fault


def unknown_name(case: Case) -> Iterator[Fault]:
    """A tool that was not declared; where a marker leaked into a known name, that is the fault."""
    for judged in case.calls:
        leaked = judged.name != judged.call.name.value
        if judged.tool is None and not (leaked and judged.name in case.asked.tools):
            yield fault("name.unknown", call=judged.call.position, span=judged.call.name.whole)


def missing_id(case: Case) -> Iterator[Fault]:
    """A call without an id: its result cannot be handed back."""
    for judged in case.calls:
        if not judged.call.id:
            yield fault("id.missing", call=judged.call.position)


def duplicate_id(case: Case) -> Iterator[Fault]:
    """Two calls with one id, within the answer or with one that the conversation already holds."""
    seen = set(case.asked.past_ids)
    for judged in case.calls:
        if judged.call.id and judged.call.id in seen:
            yield fault("id.duplicate", call=judged.call.position)
        seen.add(judged.call.id)


def family_id(case: Case) -> Iterator[Fault]:
    """Kimi reads its own calls back by ``functions.NAME:INDEX`` and no other id."""
    if "kimi" not in case.asked.model.lower():
        return
    for judged in case.calls:
        identity = judged.call.id
        if identity and re.fullmatch(rf"functions\.{re.escape(judged.name)}:\d+", identity) is None:
            yield fault("id.family_format", call=judged.call.position)
