import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.border.part import BorderPart
from evals.parts.border.truth import BorderPlan
from evals.parts.part import Known
from evals.truth import FloorTable
from ringtrue.endpoint import LogprobRow
from ringtrue.records import (
    Cause,
    Check,
    Failure,
    FailureKind,
    Finding,
    Observation,
    Party,
    Request,
    State,
)
from ringtrue.verdict import state_of
from tests.unit.evals.tiny import ACME, SIZE, TinyEndpoint, TinyReference, still_clock

HIDDEN = Known(k=None, trusted=False, scaling=None, logprobs=State.UNKNOWN)
SHOWN = Known(k=20, trusted=True, scaling=None, logprobs=State.OK)
PLAN = BorderPlan(candidates=600, inputs=16)


@dataclass
class Night:
    """One endpoint asked by the border part, and what was handed on."""

    part: BorderPart
    observations: list[Observation] = field(default_factory=list)

    async def ask(self, endpoint: TinyEndpoint, known: Known = HIDDEN) -> tuple[Finding, ...]:
        asker = Asker(
            endpoint,
            Scribe(endpoint.spec.name, "r1", self.part.name),
            seed=0,
            clock=still_clock(),
            emit=self._emit,
            on_progress=lambda _: None,
            record=None,
        )
        return await self.part.examine(asker, known)

    def numbers(self) -> dict[str, tuple[float, int]]:
        return {o.metric: (o.value, o.n) for o in self.observations if o.metric.startswith("border")}

    async def _emit(self, observations: Sequence[Observation]) -> None:
        self.observations += observations


def a_part(reference: TinyReference | None = None, plan: BorderPlan = PLAN, **more: object) -> BorderPart:
    settings = {"seed": 1, "floor_dtype": "bf16"} | more
    return BorderPart(reference or TinyReference(), plan, **settings)  # type: ignore[arg-type]


async def judged(endpoint: TinyEndpoint, plan: BorderPlan = PLAN) -> Finding:
    (finding,) = await Night(a_part(plan=plan)).ask(endpoint)
    return finding


def another_model(_ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
    return np.roll(logits, 7)


async def test_an_honest_endpoint_stays_within_the_support() -> None:
    night, endpoint = Night(a_part()), TinyEndpoint()

    (finding,) = await night.ask(endpoint)

    assert (state_of(finding), finding.check, finding.n) == (State.OK, Check.IDENTITY, 16)
    assert finding.detectable_effect is not None
    assert len(endpoint.sent) == 3 * 16
    assert len({request.session for request in endpoint.sent}) == 3 * 16
    assert night.numbers()["border_violations"] == (0.0, 16)
    assert 0 < night.numbers()["border_distance"][0] < 1


async def test_another_model_is_changed_after_one_round() -> None:
    night, endpoint = Night(a_part()), TinyEndpoint(corrupt=another_model)

    (finding,) = await night.ask(endpoint)

    assert state_of(finding) is State.CHANGED
    assert (finding.cause, finding.alternatives) == (Cause.IDENTITY, (Cause.NUMERICS, Cause.SAMPLING))
    assert len(endpoint.sent) == 16
    assert night.numbers()["border_violations"][0] > 0.9


async def test_a_model_behind_every_third_session_is_seen_over_the_rounds() -> None:
    endpoint = TinyEndpoint(corrupt=another_model, corrupts=lambda session: hash_of(session) % 3 == 0)

    finding = await judged(endpoint)

    assert finding.value is not None
    assert 0.3 < finding.value < 1
    assert len(endpoint.sent) > 16


async def test_endpoints_with_trusted_logprobs_are_asked_only_always() -> None:
    endpoint, reference = TinyEndpoint(), TinyReference()

    assert await Night(a_part(reference)).ask(endpoint, SHOWN) == ()
    assert endpoint.sent == []
    assert reference.asked == []
    assert len(await Night(a_part(always=True)).ask(endpoint, SHOWN)) == 1


async def test_other_prompt_ids_are_withheld_after_one_round() -> None:
    endpoint = TinyEndpoint(change_ids=lambda ids: ids[:-1])
    night = Night(a_part())

    (finding,) = await night.ask(endpoint)

    assert (state_of(finding), finding.message) == (
        State.UNKNOWN,
        "withheld: the token IDs differ (see tokens)",
    )
    assert len(endpoint.sent) == 16
    assert night.numbers() == {}


async def test_text_alone_tells_honest_from_other_and_leaves_the_prompt_possible() -> None:
    def readable(row: np.ndarray, _request: Request, _rng: np.random.Generator) -> int:
        return 33 + int(row[33:127].argmax())

    honest = await judged(TinyEndpoint(shows_ids=False, draw=readable))
    other = await judged(TinyEndpoint(shows_ids=False, draw=readable, corrupt=another_model))

    assert (state_of(honest), state_of(other)) == (State.OK, State.CHANGED)
    assert other.alternatives == (Cause.NUMERICS, Cause.SAMPLING, Cause.PROMPT)
    assert "does not show the prompts' token IDs" in honest.message


async def test_answers_without_text_are_left_out_and_too_few_are_unknown() -> None:
    empty = TinyEndpoint(shows_ids=False, draw=lambda _row, _request, _rng: SIZE - 1)

    finding = await judged(empty)

    assert state_of(finding) is State.UNKNOWN
    assert finding.n == 0
    assert "more; 48 answers left out" in finding.message


async def test_too_few_inputs_are_unknown_with_the_number_missing() -> None:
    finding = await judged(TinyEndpoint(), replace(PLAN, inputs=2))

    assert state_of(finding) is State.UNKNOWN
    assert "inputs are needed" in finding.message


async def test_no_tie_among_the_candidates_is_the_callers_to_mend() -> None:
    finding = await judged(TinyEndpoint(), replace(PLAN, candidates=1))

    assert (state_of(finding), finding.cause) == (State.UNKNOWN, Cause.CALLER)
    assert "raise their number" in finding.message


async def test_a_dead_endpoint_is_unknown_with_what_went_wrong() -> None:
    dead = Failure(FailureKind.SERVER_ERROR, "it answered 500", Party.PROVIDER, status=500)

    finding = await judged(TinyEndpoint(fail=lambda _request, _turn: dead))

    assert (state_of(finding), finding.message) == (State.UNKNOWN, "it answered 500")


async def test_search_and_replays_are_computed_once_for_all_endpoints() -> None:
    reference = TinyReference()
    part = a_part(reference)
    await Night(part).ask(TinyEndpoint())
    once = len(reference.asked)
    await Night(part).ask(TinyEndpoint(spec=replace(ACME, name="other")))

    assert len(reference.asked) == once == PLAN.candidates


async def test_what_was_found_is_kept_between_nights() -> None:
    kept: dict[str, FloorTable] = {}

    class Shelf:
        async def get(self, key: str) -> FloorTable | None:
            return kept.get(key)

        async def put(self, key: str, table: FloorTable) -> None:
            rows: Mapping[str, Sequence[Sequence[float]]] = {
                name: [list(pair) for pair in pairs] for name, pairs in table.items()
            }
            kept[key] = rows

    reference = TinyReference()
    (first,) = await Night(a_part(cache=Shelf())).ask(TinyEndpoint())
    (again,) = await Night(a_part(reference, cache=Shelf())).ask(TinyEndpoint())

    assert reference.asked == []
    assert first == again


async def test_honest_answers_that_leave_the_support_raise_the_rate() -> None:
    class Restless(TinyReference):
        async def jittered(self, ids: Sequence[Sequence[int]], *, dtype: str, seed: int) -> list[LogprobRow]:
            rows = await super().jittered(ids, dtype=dtype, seed=seed)
            return [np.roll(row, 1) if i % 4 == 0 else row for i, row in enumerate(rows)]

    endpoint = TinyEndpoint(corrupt=another_model, corrupts=lambda session: hash_of(session) % 4 == 0)
    (finding,) = await Night(a_part(Restless())).ask(endpoint)

    assert state_of(finding) is not State.CHANGED


def hash_of(session: str | None) -> int:
    return zlib.crc32((session or "").encode())


def test_the_plan_names_as_many_requests_as_there_are_at_most() -> None:
    planned = a_part().planned(ACME)

    assert len(planned) == 3 * 16
    assert len({request.id for request, _ in planned}) == 3 * 16
    assert all(tokens >= len(TinyReference().render(r.messages or ())) for r, tokens in planned)


def test_the_basis_follows_what_the_numbers_depend_on() -> None:
    bases = {
        a_part().basis,
        a_part().basis,
        a_part(seed=2).basis,
        a_part(floor_dtype="fp16").basis,
        a_part(plan=replace(PLAN, asks=1)).basis,
        a_part(TinyReference(fingerprint="0" * 64)).basis,
    }

    assert len(bases) == 5
