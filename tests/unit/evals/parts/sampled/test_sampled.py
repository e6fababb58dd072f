from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.sampled.asking import PAIRS
from evals.parts.sampled.part import SampledPart
from probes.self_test import Scaling
from ringtrue.records import (
    Cause,
    Check,
    EndpointSpec,
    Failure,
    FailureKind,
    Finding,
    Observation,
    Request,
    Severity,
    State,
)
from tests.unit.evals.tiny import ACME, TinyEndpoint, TinyReference, honest_draw, still_clock

SILENT = Known(None, trusted=False, scaling=None, logprobs=State.UNKNOWN)
BELIEVED = Known(20, trusted=True, scaling=Scaling.RAW, logprobs=State.OK)


@dataclass
class Night:
    finding: Finding
    numbers: dict[str, Observation]
    sent: list[Request] = field(default_factory=list)


def part(**options: object) -> SampledPart:
    return SampledPart(TinyReference(), seed=3, floor_dtype="bf16", **{"candidates": 48, **options})


async def night(
    endpoint: TinyEndpoint, known: Known = BELIEVED, run: str = "r1", made: SampledPart | None = None
) -> Night:
    seen: list[Observation] = []

    async def emit(observations: list[Observation]) -> None:
        seen.extend(observations)

    made = made or part()
    asker = Asker(
        endpoint,
        Scribe(endpoint.spec.name, run, made.name),
        seed=0,
        clock=still_clock(),
        emit=emit,
        on_progress=lambda _: None,
        record=None,
    )
    (finding,) = await made.examine(asker, known)
    names = {"sampling_log_e", "temperature", "seed_honoured"}
    return Night(finding, {one.metric: one for one in seen if one.metric in names}, endpoint.sent)


def at_temperature(factor: float) -> Callable[[np.ndarray, Request, np.random.Generator], int]:
    def draw(row: np.ndarray, request: Request, rng: np.random.Generator) -> int:
        asked = request.sampling.temperature or 1.0
        sampling = replace(request.sampling, temperature=asked * factor)
        return honest_draw(row, replace(request, sampling=sampling), rng)

    return draw


def greedy(row: np.ndarray, request: Request, rng: np.random.Generator) -> int:
    return int(row.argmax())


def never_the_top(row: np.ndarray, request: Request, rng: np.random.Generator) -> int:
    without = np.where(np.arange(row.size) == row.argmax(), -np.inf, row)
    return honest_draw(without, request, rng)


def deaf_to_seeds(row: np.ndarray, request: Request, rng: np.random.Generator) -> int:
    return honest_draw(row, replace(request, sampling=replace(request.sampling, seed=None)), rng)


def stuck(row: np.ndarray, request: Request, rng: np.random.Generator) -> int:
    return honest_draw(row, replace(request, sampling=replace(request.sampling, seed=1)), rng)


@pytest.mark.parametrize("known", [BELIEVED, SILENT])
async def test_an_honest_endpoint_is_ok_long_before_the_limit(known: Known) -> None:
    endpoint = TinyEndpoint(shows_logprobs=known is BELIEVED)
    found = await night(endpoint, known)

    assert found.finding.measured
    assert found.finding.severity is Severity.INFO
    assert found.finding.check is Check.SAMPLING
    assert found.finding.code == "sampling.drawn_as_asked"
    assert len(found.sent) == found.finding.n + PAIRS < 1000
    assert found.finding.interval is not None
    assert found.finding.interval.low is not None
    assert found.finding.interval.high is not None
    assert found.finding.interval.low <= 1 <= found.finding.interval.high
    assert found.finding.detectable_effect is not None
    assert found.finding.evidence["null"] == ("endpoint" if known is BELIEVED else "reference")
    assert found.finding.evidence["seed_honoured"] is True
    assert found.numbers["seed_honoured"].value > 0.5
    assert found.numbers["sampling_log_e"].value < np.log(1000)
    assert found.numbers["temperature"].n == found.finding.n


async def test_no_two_requests_share_a_seed_or_a_session_and_no_night_repeats_another() -> None:
    first, second = await night(TinyEndpoint()), await night(TinyEndpoint(), run="r2")

    drawn = [one for one in first.sent if one.id.startswith("sampled")]
    assert len({one.session for one in first.sent}) == len(first.sent)
    assert len({one.sampling.seed for one in drawn}) == len(drawn)
    assert all(one.sampling.temperature == 1 and one.sampling.max_tokens == 1 for one in first.sent)
    assert not {one.session for one in first.sent} & {one.session for one in second.sent}
    assert {one.sampling.seed for one in first.sent} != {one.sampling.seed for one in second.sent}


@pytest.mark.parametrize("known", [BELIEVED, SILENT])
@pytest.mark.parametrize(
    ("draw", "best"),
    [
        (greedy, "greedy"),
        (never_the_top, "no_top"),
        (at_temperature(1.25), "temperature_1.25"),
        (at_temperature(0.8), "temperature_0.8"),
        (stuck, "repeats"),
    ],
)
async def test_a_fault_is_changed_and_named(
    draw: Callable[[np.ndarray, Request, np.random.Generator], int], best: str, known: Known
) -> None:
    found = await night(TinyEndpoint(draw=draw, shows_logprobs=known is BELIEVED), known)

    assert found.finding.severity is Severity.WARN
    assert found.finding.cause is Cause.SAMPLING
    assert found.finding.evidence["best"] == best
    assert found.numbers["sampling_log_e"].value >= np.log(1000)
    if known is BELIEVED:
        assert found.finding.alternatives == ()
    else:
        assert {Cause.NUMERICS, Cause.IDENTITY} <= set(found.finding.alternatives)
        assert "tokens alone can't tell" in found.finding.message


async def test_the_temperature_is_estimated_with_an_interval() -> None:
    found = await night(TinyEndpoint(draw=at_temperature(1.25)))

    interval = found.finding.interval
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    assert 1 < interval.low < 1.25 < interval.high
    assert found.finding.unit == "times"
    assert "temperature were 1.25 times what was asked" in found.finding.message


async def test_greedy_answers_say_nothing_of_the_seed() -> None:
    found = await night(TinyEndpoint(draw=greedy))

    assert found.finding.n == 32
    assert found.finding.evidence["seed_honoured"] is None
    assert "seed_honoured" not in found.numbers


async def test_a_seed_that_counts_for_nothing_is_stated_and_no_fault() -> None:
    found = await night(TinyEndpoint(draw=deaf_to_seeds))

    assert found.finding.code == "sampling.drawn_as_asked"
    assert found.finding.evidence["seed_honoured"] is False
    assert "the seed is not honoured" in found.finding.message


async def test_other_numerics_are_not_taken_for_sampling_where_own_logprobs_are_given() -> None:
    def corrupt(ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
        return 0.6 * logits + np.random.default_rng(len(ids)).standard_normal(logits.size)

    known = replace(BELIEVED, logprobs=State.WORSE)
    found = await night(TinyEndpoint(corrupt=corrupt), known)

    assert found.finding.code == "sampling.drawn_as_asked"
    assert found.finding.evidence["null"] == "endpoint"


async def test_without_own_logprobs_another_distribution_is_withheld_and_nothing_is_asked() -> None:
    known = Known(20, trusted=True, scaling=Scaling.PROCESSED, logprobs=State.CHANGED)
    found = await night(TinyEndpoint(), known)

    assert not found.finding.measured
    assert found.finding.message.startswith("withheld")
    assert found.sent == []


async def test_other_token_ids_are_withheld_after_one_round() -> None:
    found = await night(TinyEndpoint(change_ids=lambda ids: ids[:-1]))

    assert not found.finding.measured
    assert "see tokens" in found.finding.message
    assert len(found.sent) == 32
    assert found.numbers == {}


async def test_too_few_draws_are_unknown_and_say_how_many_more_would_decide() -> None:
    found = await night(TinyEndpoint(), made=part(draws=64))

    assert not found.finding.measured
    assert found.finding.n == 64
    assert "more would decide" in found.finding.message
    assert found.finding.detectable_effect is not None


async def test_an_endpoint_that_fails_is_unknown_with_its_own_reason() -> None:
    failure = Failure(FailureKind.SERVER_ERROR, "the server is on fire")
    found = await night(TinyEndpoint(fail=lambda request, turn: failure))

    assert not found.finding.measured
    assert found.finding.message == "the server is on fire"
    assert len(found.sent) < 32


async def test_text_alone_names_tokens_and_leaves_the_prompt_among_the_causes() -> None:
    spec = EndpointSpec("acme", "http://127.0.0.1:9", "tiny")
    endpoint = TinyEndpoint(spec=spec, shows_ids=False, shows_logprobs=False, draw=greedy)
    found = await night(endpoint, SILENT)

    assert found.finding.evidence["best"] == "greedy"
    assert Cause.PROMPT in found.finding.alternatives


async def test_the_plan_covers_every_request_and_no_prompt_is_longer_than_planned() -> None:
    made = part(draws=64)
    planned = made.planned(ACME)
    found = await night(TinyEndpoint(), made=made)

    sent = sorted(len(TinyReference().render(one.messages or ())) for one in found.sent)
    assert len(planned) == 64 + PAIRS >= len(sent)
    assert all(many <= most for many, most in zip(sent, sorted(tokens for _, tokens in planned), strict=True))


async def test_the_basis_follows_what_is_asked_and_how_it_is_judged() -> None:
    assert part().basis == part().basis
    assert len({part().basis, part(prompts=16).basis, part(candidates=51).basis}) == 3


async def test_the_choice_of_prompts_is_kept_and_then_only_those_are_computed() -> None:
    class Kept(dict[str, object]):
        async def get(self, key: str) -> object:
            return dict.get(self, key)

        async def put(self, key: str, table: object) -> None:
            self[key] = table

    cache, counts, messages = Kept(), [], []
    for _ in range(2):
        reference = TinyReference()
        made = SampledPart(reference, seed=3, floor_dtype="bf16", candidates=48, cache=cache)
        found = await night(TinyEndpoint(), made=made)
        counts.append(len(reference.asked))
        messages.append(found.finding.message)
    assert counts == [48, 32]
    assert messages[0] == messages[1]
