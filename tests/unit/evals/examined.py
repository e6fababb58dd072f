"""One examination of a tiny endpoint, and everything it handed out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from evals.examine import Examination, examine
from evals.identity import Registered
from evals.plan import ExaminePlan
from evals.questions import Questions
from evals.truth import Truth
from ringtrue.records import (
    Check,
    Exchange,
    Finding,
    Observation,
    State,
)
from ringtrue.verdict import state_of
from tests.unit.evals.tiny import (
    TinyEndpoint,
    TinyReference,
    curve_prompts,
    still_clock,
)

COUNTS = {32: 64, 128: 24, 512: 16, 2048: 4}
PLAN = ExaminePlan(self_test=False)


@dataclass
class Night:
    """One examination, and everything it handed out."""

    reference: TinyReference = field(default_factory=TinyReference)
    registered: Registered = field(default_factory=Registered)
    observations: list[Observation] = field(default_factory=list)
    recorded: list[Exchange] = field(default_factory=list)
    progress: list[int] = field(default_factory=list)
    examination: Examination | None = None
    now: datetime | None = None

    async def run(
        self, endpoint: TinyEndpoint, counts: dict[int, int] = COUNTS, plan: ExaminePlan = PLAN
    ) -> dict[Check, Finding]:
        truth = Truth(
            self.reference,
            curve_prompts(counts),
            floor_dtype="bf16",
            k=plan.k,
            seed=plan.seed,
            now=self.now,
        )
        self.examination = await examine(
            endpoint,
            Questions(truth, plan, registered=self.registered),
            run="r1",
            clock=still_clock(),
            emit=self._emit,
            on_progress=self.progress.append,
            record=self.recorded.append,
        )
        loudness = (State.OK, State.UNKNOWN, State.CHANGED, State.WORSE)
        by_state = sorted(self.examination.findings, key=lambda f: loudness.index(state_of(f)))
        return {finding.check: finding for finding in by_state}

    async def _emit(self, observations: Sequence[Observation]) -> None:
        self.observations += observations
