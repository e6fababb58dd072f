"""Long prompts that take turns: one a night, and a statement about their length after four."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from collector.cycle import Models, run_cycle
from evals.plan import ExaminePlan
from probes.clock import Clock
from ringtrue.config import settings_from
from ringtrue.database import open_database
from ringtrue.records import Check, State, Verdict
from ringtrue.store import Store
from tests.no_parts import NO_PARTS
from tests.unit.collector.bench import NOON, Said
from tests.unit.evals.tiny import TinyEndpoint, TinyReference

DAY = timedelta(days=1)
LONG = 2048


def corrupt_beyond(ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
    return logits if len(ids) < LONG else -logits


@dataclass
class Nights:
    """Cycles of one endpoint, a night each, with one prompt of 2,048 tokens a night."""

    store: Store
    reference: TinyReference = field(default_factory=TinyReference)
    endpoint: TinyEndpoint = field(default_factory=TinyEndpoint)
    now: datetime = NOON

    async def pass_one(self, after: timedelta = DAY) -> Verdict:
        clock = Clock(lambda: 0.0, lambda: self.now, self._no_sleep)
        settings = settings_from(
            {
                "endpoints": [
                    {"name": "acme", "base_url": "http://acme/v1", "model": "tiny", "dialect": "vllm"}
                ],
                "probe": {"buckets": [[32, 64], [128, 24], [LONG, 1]]},
                "parts": NO_PARTS,
            },
            source="test",
        )
        result = await run_cycle(
            settings,
            store=self.store,
            models=Models(self.reference),
            connect=lambda spec, _budget: self.endpoint,
            clock=clock,
            progress=Said(),
        )
        self.now += after
        return next(verdict for verdict in result.verdicts if verdict.check is Check.CONTEXT)

    async def _no_sleep(self, _seconds: float) -> None:
        return None


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    # The tiny endpoint takes no plain prompts, which the self-test sends.
    monkeypatch.setattr("collector.cycle.ExaminePlan", partial(ExaminePlan, self_test=False))
    nights = Nights(Store(open_database(f"sqlite:///{tmp_path / 'r.db'}"), lambda: nights.now))
    return nights


async def test_a_fault_beyond_a_rare_length_is_found_with_its_onset_on_the_fourth_night(
    nights: Nights,
) -> None:
    nights.endpoint.corrupt = corrupt_beyond
    verdicts = [await nights.pass_one() for _ in range(4)]

    assert [verdict.verdict for verdict in verdicts] == [State.UNKNOWN] * 3 + [State.WORSE]
    assert "1 of 1 prompts at 2,048 tokens are grossly off: 3 more are needed there" in verdicts[0].reason
    assert verdicts[3].onset == LONG
    assert "over the last 4 nights" in verdicts[3].reason
    asked = [r.id for r in nights.endpoint.sent if r.id.startswith(f"{LONG}-")]
    assert len(set(asked)) == 4


async def test_an_honest_endpoint_is_cleared_on_the_fourth_night(nights: Nights) -> None:
    verdicts = [await nights.pass_one() for _ in range(4)]

    assert [verdict.verdict for verdict in verdicts] == [State.UNKNOWN] * 3 + [State.OK]
    assert "3 more at 2,048 tokens are needed; each night brings other prompts there" in verdicts[0].reason


async def test_two_runs_of_one_day_ask_the_same_prompt_and_count_once(nights: Nights) -> None:
    nights.endpoint.corrupt = corrupt_beyond
    verdicts = [await nights.pass_one(after=timedelta(hours=1)) for _ in range(5)]

    assert {verdict.verdict for verdict in verdicts} == {State.UNKNOWN}
