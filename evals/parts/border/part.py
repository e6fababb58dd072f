"""Border inputs: does an endpoint without logprobs serve this model at all?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evals import availability
from evals.parts.asker import Asker
from evals.parts.border.answer import first_token
from evals.parts.border.truth import BorderPlan, Borders, BorderTruth
from evals.parts.part import Known
from evals.parts.sieve import WITHHELD, Sieve
from evals.truth import FloorCache
from logprob_drift.token_only.border_finding import border_finding
from logprob_drift.token_only.border_inputs import distance, violations
from logprob_drift.token_only.border_night import BorderNight, judge_night
from probes.border_search import BorderInput, border_request
from probes.dialects import dialect_named
from ringtrue.endpoint import Reference
from ringtrue.records import Check, EndpointSpec, Finding, Party, Request, State


class BorderPart:
    """Asks for the first tokens of border inputs, each ask in a session of its own.

    In as many rounds over all inputs as the plan asks: the first that shows another
    model ends the asking. Only endpoints without trusted logprobs are asked,
    unless ``always``.
    """

    name = "border"
    check = Check.IDENTITY

    def __init__(
        self,
        reference: Reference,
        plan: BorderPlan | None = None,
        *,
        seed: int,
        floor_dtype: str,
        always: bool = False,
        cache: FloorCache | None = None,
    ) -> None:
        """Cut the candidates; the search waits until an endpoint needs it.

        Raises:
            ConfigError: they do not fit the model's context, or the texts hold too few.
        """
        self._plan = plan or BorderPlan()
        self._truth = BorderTruth(reference, self._plan, seed=seed, floor_dtype=floor_dtype, cache=cache)
        self._always = always

    @property
    def basis(self) -> str:
        """A hash of the reference, the candidates, the settings and the number of asks."""
        return f"{self._truth.key[:16]}x{self._plan.asks}"

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return as many requests as there are at most, to the longest candidates.

        Which ones are asked is known after the search: these cost no less.
        """
        dialect = dialect_named(spec.dialect)
        expected = self._truth.expected
        longest = sorted(self._truth.candidates, key=lambda one: -len(expected[one.id]))[: self._plan.inputs]
        return [
            (border_request(one.id, one.messages, turn=turn, dialect=dialect), len(expected[one.id]))
            for turn in range(self._plan.asks)
            for one in longest
        ]

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        """Ask and judge; no finding for an endpoint whose logprobs are trusted."""
        if not self._always and known.k is not None and known.trusted:
            return ()
        borders = await self._truth.borders()
        if borders is None:
            reason = f"none of {len(self._truth.candidates)} candidates is close to a tie: raise their number"
            return (availability.unmeasured(asker.spec.name, self.check, reason, Party.CALLER),)
        sieve, counts = Sieve(), _Counts(borders.inputs)
        night = self._judge(counts, borders, 0)
        for turn in range(self._plan.asks):
            await self._round(asker, borders, turn, sieve, counts)
            night = self._judge(counts, borders, turn + 1)
            if night.state is State.CHANGED or asker.stopped is not None or sieve.mostly_withheld:
                break
        if not sieve.mostly_withheld and night.n:
            await asker.number("border_violations", night.violating / night.n, "share", night.n)
            await asker.number("border_distance", counts.distance(), "total variation", night.n)
        return (_finding(asker, night, sieve),)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        await self._truth.aclose()

    async def _round(self, asker: Asker, borders: Borders, turn: int, sieve: Sieve, counts: _Counts) -> None:
        places = {}
        requests = []
        for place, one in enumerate(borders.inputs):
            request = border_request(one.id, one.messages, turn=turn, dialect=asker.dialect)
            places[request.id] = place
            requests.append(request)
        async for exchange in asker.ask(requests):
            place = places[exchange.request.id]
            if sieve.lets_through(exchange, borders.inputs[place].ids):
                token = first_token(exchange, borders.inputs[place])
                if token is None:
                    sieve.unreadable += 1
                else:
                    counts.add(place, token)

    def _judge(self, counts: _Counts, borders: Borders, rounds: int) -> BorderNight:
        return judge_night(
            counts.violating,
            counts.answered,
            rate=borders.rate,
            asks=max(rounds, 1),
            looks=self._plan.asks,
            level=self._plan.level,
        )


class _Counts:
    """How often each input was answered with each of its tokens, or (last column) with any other."""

    def __init__(self, inputs: Sequence[BorderInput]) -> None:
        width = max(len(one.tokens) for one in inputs)
        self._support = np.zeros((len(inputs), width + 1), dtype=np.bool_)
        self._chances = np.zeros((len(inputs), width + 1))
        for place, one in enumerate(inputs):
            self._support[place, : len(one.tokens)] = True
            self._chances[place, : len(one.tokens)] = one.probabilities
        self._chances[:, -1] = 1 - self._chances.sum(axis=1)
        self._sizes = [len(one.tokens) for one in inputs]
        self._seen: NDArray[np.int64] = np.zeros(self._support.shape, dtype=np.int64)

    def add(self, place: int, token: int) -> None:
        self._seen[place, token if token < self._sizes[place] else -1] += 1

    @property
    def answered(self) -> int:
        """How many inputs have an answer."""
        return int((self._seen.sum(axis=1) > 0).sum())

    @property
    def violating(self) -> int:
        """How many have one outside their support."""
        return int(violations(self._seen[None], self._support)[0])

    def distance(self) -> float:
        """The mean total variation from the reference's probabilities."""
        return float(distance(self._seen[None], self._chances)[0])


def _finding(asker: Asker, night: BorderNight, sieve: Sieve) -> Finding:
    name = asker.spec.name
    if sieve.mostly_withheld:
        return availability.unmeasured(name, Check.IDENTITY, WITHHELD, Party.UNKNOWN)
    if asker.stopped is not None and night.state is State.UNKNOWN:
        return availability.unmeasured_because(name, Check.IDENTITY, asker.stopped, n=night.n)
    return border_finding(name, night, sieve.basis)
