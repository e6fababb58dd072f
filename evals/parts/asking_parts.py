"""The parts of one examination, asked one after the other once the context curve is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evals import availability
from evals.asking import Asked
from evals.comparisons import Emit
from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known, Part
from probes.clock import Clock
from ringtrue.endpoint import Endpoint
from ringtrue.records import Check, Exchange, Failure, Finding, State
from ringtrue.verdict import loudest_of, state_of


def known_from(asked: Asked, findings: Sequence[Finding]) -> Known:
    """Return what the curve's ``findings`` say to the parts that come after it."""
    trust = asked.trust
    return Known(
        k=asked.k,
        trusted=asked.k is not None and (trust is None or trust.trusted is True),
        scaling=trust.scaling if trust is not None else None,
        logprobs=loudest_of(state_of(f) for f in findings if f.check is Check.LOGPROBS) or State.UNKNOWN,
    )


class AskingParts:
    """Asks the parts; ``exchanges`` holds all that was sent for them."""

    def __init__(
        self,
        endpoint: Endpoint,
        known: Known,
        *,
        run: str,
        seed: int,
        clock: Clock,
        emit: Emit,
        on_progress: Callable[[int], None],
        record: Callable[[Exchange], None] | None,
    ) -> None:
        self.exchanges: list[Exchange] = []
        self._endpoint = endpoint
        self._known = known
        self._run = run
        self._seed = seed
        self._clock = clock
        self._emit = emit
        self._on_progress = on_progress
        self._record = record

    async def ask_all(self, parts: Sequence[Part], *, blocked: Failure | None) -> list[Finding]:
        """Return what the parts find; of an endpoint that answered nothing (``blocked``) none is asked."""
        findings: list[Finding] = []
        for part in parts:
            planned = len(part.planned(self._endpoint.spec))
            asker = self._asker(part)
            if blocked is not None:
                name = self._endpoint.spec.name
                findings.append(availability.unmeasured_because(name, part.check, blocked))
            else:
                findings += await part.examine(asker, self._known)
                self.exchanges += asker.exchanges
            # What was decided early, or was not asked at all, is done with too.
            self._on_progress(max(planned - len(asker.exchanges), 0))
        return findings

    def _asker(self, part: Part) -> Asker:
        return Asker(
            self._endpoint,
            Scribe(self._endpoint.spec.name, self._run, part.name),
            seed=self._seed,
            clock=self._clock,
            emit=self._emit,
            on_progress=self._on_progress,
            record=self._record,
        )
