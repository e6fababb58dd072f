"""False alarms: an honest server whose calendar is not the reference's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ringtrue.errors import ModelError
from tokenizer_checks.templates.fixtures import Fixture
from tokenizer_checks.templates.model import ModelPrompts

DAY, MOMENT = timedelta(days=1), timedelta(seconds=2)
MIDNIGHTS = (datetime(2026, 3, 10), datetime(2027, 1, 1))  # noqa: DTZ001 - wall clocks of the two machines


def clocks() -> Iterator[tuple[datetime, datetime]]:
    """Yield clocks of the reference and of the server: on both sides of midnight, and a day apart."""
    for midnight in MIDNIGHTS:
        before, after = midnight - MOMENT / 2, midnight + MOMENT / 2
        yield before, before
        yield before, after
        yield after, before
        yield after, after
        yield after, after + DAY - MOMENT  # 23:59:59 of the same day, where it is another day elsewhere
        yield before, before + DAY
        yield after, after - DAY


def alarms(prompts: ModelPrompts, chats: Sequence[Fixture]) -> tuple[int, list[str]]:
    """Return how many honest prompts were held against the reference's, and those that raised an alarm."""
    asked, raised = 0, []
    for fixture in chats:
        for now, elsewhere in clocks():
            try:
                used = prompts.ids(fixture.chat, elsewhere)
            except ModelError:
                continue
            asked += 1
            if prompts.expected(fixture.chat, now, used) != used:
                raised.append(f"{fixture.name} at {now} against {elsewhere}")
    return asked, raised
