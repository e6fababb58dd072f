from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.greedy.part import OPENING, OPENING_TOKENS, GreedyPart
from evals.parts.part import Known
from ringtrue.endpoint import Forced
from ringtrue.errors import ConfigError, MeasureError
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
from tests.unit.evals.tiny import ACME, NOISE, SIZE, TinyEndpoint, TinyReference, still_clock

HIDDEN = Known(k=None, trusted=False, scaling=None, logprobs=State.UNKNOWN)
SMALL = {"seed": 1, "floor_dtype": "bf16", "prompts": 80, "tokens": 8}
SHOWN = Known(k=20, trusted=True, scaling=None, logprobs=State.OK)


@dataclass
class Night:
    """One endpoint asked by the greedy part, and what was handed on."""

    part: GreedyPart = field(default_factory=lambda: GreedyPart(TinyReference(), **SMALL))
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

    async def one(self, endpoint: TinyEndpoint) -> Finding:
        (finding,) = await self.ask(endpoint)
        return finding

    def number(self, metric: str) -> tuple[float, int]:
        (found,) = [(o.value, o.n) for o in self.observations if o.metric == metric]
        return found

    async def _emit(self, observations: Sequence[Observation]) -> None:
        self.observations += observations


def a_part(reference: TinyReference | None = None, **settings: object) -> GreedyPart:
    return GreedyPart(reference or TinyReference(), **SMALL | settings)  # type: ignore[arg-type]


def noisier(times: float) -> TinyEndpoint:
    def corrupt(ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
        noise = np.random.default_rng([len(ids), ids[-1]]).standard_normal(SIZE)
        return logits + times * NOISE * noise

    return TinyEndpoint(corrupt=corrupt)


async def test_an_honest_endpoint_is_ok_and_asked_both_looks() -> None:
    night, endpoint = Night(), TinyEndpoint()

    finding = await night.one(endpoint)

    assert (state_of(finding), finding.check, finding.n) == (State.OK, Check.SAMPLING, 80)
    assert finding.detectable_effect is not None
    assert finding.value is not None
    assert finding.value < finding.detectable_effect
    assert len(endpoint.sent) == OPENING + 80
    assert len({request.id for request in endpoint.sent}) == len(endpoint.sent)
    assert night.number("greedy_margin") == (pytest.approx(finding.value), 80)
    assert night.number("greedy_margin_floor")[1] == 80
    assert night.number("greedy_match")[0] > 0.95


async def test_another_model_is_changed_by_the_opening_alone() -> None:
    endpoint = TinyEndpoint(corrupt=lambda _ids, logits: np.roll(logits, 7))
    night = Night()

    finding = await night.one(endpoint)

    assert state_of(finding) is State.CHANGED
    assert (finding.cause, finding.alternatives) == (Cause.NUMERICS, (Cause.IDENTITY, Cause.SAMPLING))
    assert finding.party is Party.PROVIDER
    assert len(endpoint.sent) == OPENING
    assert finding.evidence["tokens"] == OPENING * OPENING_TOKENS
    assert "beyond 1.5x" in finding.message


async def test_a_small_fault_needs_the_second_look() -> None:
    endpoint = noisier(2)
    night = Night(a_part(prompts=200, tokens=16))

    finding = await night.one(endpoint)

    assert state_of(finding) is State.CHANGED
    assert len(endpoint.sent) == OPENING + 200


async def test_a_server_that_samples_at_temperature_0_is_changed_and_sampling_stays_possible() -> None:
    def draw(row: np.ndarray, _request: Request, rng: np.random.Generator) -> int:
        return int(rng.choice(SIZE, p=np.exp(row.astype(np.float64)) / np.exp(row.astype(np.float64)).sum()))

    finding = await Night().one(TinyEndpoint(draw=draw))

    assert state_of(finding) is State.CHANGED
    assert Cause.SAMPLING in finding.alternatives


async def test_endpoints_with_trusted_logprobs_are_asked_only_always() -> None:
    endpoint = TinyEndpoint()

    assert await Night().ask(endpoint, SHOWN) == ()
    assert endpoint.sent == []
    assert len(await Night(a_part(always=True)).ask(endpoint, SHOWN)) == 1
    assert len(await Night().ask(endpoint, replace(SHOWN, trusted=False))) == 1


async def test_other_prompt_ids_are_withheld_and_cost_the_opening_only() -> None:
    endpoint = TinyEndpoint(change_ids=lambda ids: ids[:-1])
    night = Night()

    finding = await night.one(endpoint)

    assert state_of(finding) is State.UNKNOWN
    assert finding.message == "withheld: the token IDs differ (see tokens)"
    assert len(endpoint.sent) == OPENING
    assert all(o.metric != "greedy_margin" for o in night.observations)


async def test_text_without_token_ids_is_read_where_it_gives_as_many_tokens_as_were_counted() -> None:
    readable = TinyEndpoint(shows_ids=False, draw=lambda row, _request, _rng: 65 + int(row[65:91].argmax()))

    finding = await Night().one(readable)

    assert finding.n >= 64
    assert finding.measured
    assert finding.alternatives[0] is Cause.PROMPT  # nothing but a count shows the prompt's IDs
    assert "does not show the prompts' token IDs" in finding.message


async def test_text_that_hides_its_tokens_is_unknown_with_the_number_missing() -> None:
    endpoint = TinyEndpoint(shows_ids=False, shows_counts=False)

    finding = await Night().one(endpoint)

    assert state_of(finding) is State.UNKNOWN
    assert "64 are needed: 64 more" in finding.message
    assert f"{OPENING} answers left out" in finding.message
    assert len(endpoint.sent) == OPENING


async def test_a_token_that_the_reference_does_not_know_has_the_largest_margin() -> None:
    finding = await Night().one(TinyEndpoint(draw=lambda _row, _request, _rng: SIZE + 5))

    assert state_of(finding) is State.CHANGED
    assert finding.value == 0.5
    assert finding.evidence["match"] == 0


async def test_a_dead_endpoint_is_unknown_with_what_went_wrong() -> None:
    dead = Failure(FailureKind.SERVER_ERROR, "it answered 500", Party.PROVIDER, status=500)
    endpoint = TinyEndpoint(fail=lambda _request, _turn: dead)

    finding = await Night().one(endpoint)

    assert state_of(finding) is State.UNKNOWN
    assert finding.message == "it answered 500"
    assert len(endpoint.sent) < OPENING


async def test_a_few_lost_answers_do_not_matter() -> None:
    lost = Failure(FailureKind.READ_TIMEOUT, "silence", Party.PROVIDER)
    finding = await Night().one(TinyEndpoint(fail=lambda _request, turn: lost if turn % 10 == 9 else None))

    assert (state_of(finding), finding.n) == (State.OK, 72)


async def test_equal_answers_are_forced_once_for_all_endpoints() -> None:
    forced: list[Sequence[int]] = []

    class Counting(TinyReference):
        async def forced(
            self, prompt: Sequence[int], continuation: Sequence[int], *, k: int, dtype: str
        ) -> Forced:
            forced.append(continuation)
            return await super().forced(prompt, continuation, k=k, dtype=dtype)

    part = a_part(Counting())
    constant = TinyEndpoint(draw=lambda _row, _request, _rng: 65)
    await Night(part).ask(constant)
    assert len(forced) == 2 * OPENING  # in float32 and in the replay's dtype

    await Night(part).ask(replace(constant, spec=replace(ACME, name="other"), sent=[]))
    assert len(forced) == 2 * OPENING


async def test_a_reference_that_fails_is_no_finding() -> None:
    class Broken(TinyReference):
        async def forced(
            self, prompt: Sequence[int], continuation: Sequence[int], *, k: int, dtype: str
        ) -> Forced:
            raise MeasureError("out of memory", where=dtype)

    with pytest.raises(MeasureError):
        await Night(a_part(Broken())).ask(TinyEndpoint())


def test_the_plan_names_every_request_with_its_prompts_tokens() -> None:
    planned = a_part().planned(ACME)

    assert len(planned) == OPENING + 80
    assert {request.sampling.max_tokens for request, _ in planned} == {OPENING_TOKENS, 8}
    assert all(tokens == len(TinyReference().render(request.messages or ())) for request, tokens in planned)


def test_the_basis_follows_what_the_numbers_depend_on() -> None:
    bases = {
        a_part().basis,
        a_part().basis,
        a_part(seed=2).basis,
        a_part(tokens=9).basis,
        a_part(floor_dtype="fp16").basis,
        a_part(TinyReference(fingerprint="0" * 64)).basis,
    }

    assert len(bases) == 5


def test_answers_that_do_not_fit_the_context_are_a_setting_to_change() -> None:
    with pytest.raises(ConfigError, match="greedy prompt") as raised:
        a_part(TinyReference(context_length=60), tokens=50)
    assert raised.value.remedy is not None
