"""Models whose template writes the day: which IDs are right, and what nights have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ringtrue.endpoint import PromptFormat, Reference
from tokenizer_checks.templates.model import near_days

ANY_DAY = datetime(2024, 7, 26, 12, tzinfo=UTC)
"""A day that stays the same: what nights have in common is told with the date of this one."""

_CLOCK = "strftime_now"  # the only way by which a template learns the day


def is_dated(model: PromptFormat) -> bool:
    """Tell whether the model's template asks what day it is."""
    return any(_CLOCK in (template or "") for template in (model.template, model.tool_template))


def on_day(reference: Reference, now: datetime) -> Reference:
    """Return the reference with its clock at ``now``; the same one where its template writes no date."""
    return reference.on_day(now) if is_dated(reference) else reference


def nearby(
    reference: Reference, chats: Mapping[str, Sequence[Mapping[str, Any]]], now: datetime
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return, by chat, the IDs that are right the day before ``now`` and the day after.

    Empty where the template writes no date. (`near_days`)
    """
    if not is_dated(reference):
        return {}
    days = [reference.on_day(day) for day in near_days(now)[1:]]
    return {name: tuple(day.render(messages) for day in days) for name, messages in chats.items()}
