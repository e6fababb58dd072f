from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from evals.dated import nearby, on_day
from ringtrue.records import Cause, Check, State
from ringtrue.verdict import state_of
from tests.unit.evals.examined import Night
from tests.unit.evals.tiny import TinyEndpoint, TinyReference

TONIGHT = datetime(2026, 12, 31, 23, 59, 50, tzinfo=UTC)
AFTER_MIDNIGHT = TONIGHT + timedelta(seconds=20)
STUCK = datetime(2026, 7, 26, tzinfo=UTC)


class DatedReference(TinyReference):
    """Writes the day in front of the messages, as some templates do."""

    template = "{{ strftime_now('%Y-%m-%d') }}"
    tool_template = template
    day = TONIGHT

    def render(self, messages, tools=None):
        bos, *rest = super().render(messages, tools)
        return (bos, *f"{self.day:%Y-%m-%d}".encode(), *rest)

    def on_day(self, now):
        other = replace(self)
        other.day = now
        return other


def served_on(day, **more):
    """An honest server whose calendar shows ``day``."""
    date = f"{day:%Y-%m-%d}".encode()
    return TinyEndpoint(change_ids=lambda ids: (ids[0], *date, *ids[1:]), **more)


def night():
    return Night(reference=DatedReference(), now=TONIGHT)


@pytest.mark.parametrize("server", [TONIGHT, AFTER_MIDNIGHT, TONIGHT - timedelta(days=1)])
@pytest.mark.parametrize("shows_ids", [True, False])
async def test_a_server_on_either_side_of_midnight_has_the_models_own_prompt(server, shows_ids):
    findings = await night().run(served_on(server, shows_ids=shows_ids))
    assert state_of(findings[Check.TOKENS]) is State.OK


async def test_logprobs_of_a_server_where_it_is_another_day_are_compared_on_its_own_ids():
    findings = await night().run(served_on(AFTER_MIDNIGHT))
    assert state_of(findings[Check.LOGPROBS]) is State.OK
    assert "IDs" in findings[Check.LOGPROBS].message


async def test_numerics_are_still_seen_where_it_is_another_day():
    spoiled = served_on(AFTER_MIDNIGHT, corrupt=lambda _ids, logits: logits * 1.3)
    findings = await night().run(spoiled)
    assert state_of(findings[Check.TOKENS]) is State.OK
    assert findings[Check.LOGPROBS].cause is Cause.NUMERICS


async def test_a_date_that_is_stuck_is_a_fault_of_the_prompt():
    findings = await night().run(served_on(STUCK))
    assert state_of(findings[Check.TOKENS]) in (State.CHANGED, State.WORSE)
    assert findings[Check.TOKENS].cause is Cause.PROMPT


def test_a_model_that_writes_no_date_is_the_same_every_day():
    reference = TinyReference()
    assert on_day(reference, TONIGHT) is reference
    assert nearby(reference, {"a": [{"role": "user", "content": "hi"}]}, TONIGHT) == {}
