from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import Asker
from evals.parts.part import Known
from evals.parts.prefix_cache import PrefixCachePart
from ringtrue.errors import ConfigError
from ringtrue.records import (
    Cause,
    Check,
    Exchange,
    Failure,
    FailureKind,
    Finding,
    Observation,
    Party,
    Request,
    State,
    Usage,
)
from ringtrue.verdict import state_of
from tests.unit.evals.tiny import ACME, TinyEndpoint, TinyReference, log_softmax, still_clock

KNOWN = Known(k=20, trusted=True, scaling=None, logprobs=State.OK)
TOO_LONG = Failure(FailureKind.REFUSED, "acme: HTTP 400: the context is 512", Party.CALLER, status=400)
GONE = Failure(FailureKind.UNREACHABLE, "acme: cannot connect", Party.PROVIDER)


@dataclass(eq=False)
class CachingEndpoint(TinyEndpoint):
    """Takes a prompt from its cache when the same session asked it before."""

    tells: bool = True
    when_warm: Callable[[np.ndarray], np.ndarray] = lambda logits: logits
    known: set[tuple[str | None, str]] = field(default_factory=set)
    warm: bool = False

    async def send(self, request: Request) -> Exchange:
        key = (request.session, str(request.messages))
        self.warm = key in self.known
        exchange = await super().send(request)
        if exchange.error is not None:
            return exchange
        self.known.add(key)
        usage = exchange.usage or Usage()
        cached = (usage.prompt_tokens or 0) // 16 * 16 if key in self.known and self.warm else 0
        return replace(exchange, usage=replace(usage, cached_tokens=cached)) if self.tells else exchange

    def _row(self, ids: tuple[int, ...], session: str | None, rng: np.random.Generator) -> np.ndarray:
        row = super()._row(ids, session, rng)
        return log_softmax(self.when_warm(row)) if self.warm else row


def part(**settings: Any) -> PrefixCachePart:
    return PrefixCachePart(TinyReference(), seed=0, floor_dtype="bf16", **settings)


async def ask(
    endpoint: TinyEndpoint,
    asked: PrefixCachePart | None = None,
    known: Known = KNOWN,
    numbers: dict[str, Observation] | None = None,
    run: str = "r1",
) -> tuple[Finding, ...]:
    async def emit(observations: Sequence[Observation]) -> None:
        if numbers is not None:
            numbers.update({one.metric: one for one in observations})

    asker = Asker(
        endpoint,
        Scribe(endpoint.spec.name, run, "prefix_cache"),
        seed=0,
        clock=still_clock(),
        emit=emit,
        on_progress=lambda _count: None,
        record=None,
    )
    return await (asked or part()).examine(asker, known)


# One request at a time: the endpoint above remembers whether the request it answers is warm.
ONE = replace(ACME, limits=replace(ACME.limits, max_in_flight=1))


def roll(logits: np.ndarray) -> np.ndarray:
    return np.roll(logits, 7)


async def test_a_cache_that_changes_nothing_is_fine_and_both_numbers_are_handed_on() -> None:
    numbers: dict[str, Observation] = {}
    (finding,) = await ask(CachingEndpoint(spec=ONE), numbers=numbers)
    assert (state_of(finding), finding.check, finding.n) == (State.OK, Check.CACHE, 4)
    assert "changes nothing" in finding.message
    assert finding.evidence["warm"] == 4
    assert finding.detectable_effect is not None
    for metric in ("kl_cold", "kl_warm"):
        number = numbers[metric]
        assert (number.unit, number.n, number.probe) == ("nats", 4, "prefix_cache")
        assert 0 < number.value < finding.detectable_effect


async def test_a_cache_that_changes_answers_is_numerics() -> None:
    (finding,) = await ask(CachingEndpoint(spec=ONE, when_warm=roll))
    assert (state_of(finding), finding.cause, finding.alternatives) == (State.WORSE, Cause.NUMERICS, ())
    assert finding.message.startswith("the prefix cache changes answers")


async def test_a_change_within_tolerance_but_beyond_the_floor_is_changed() -> None:
    def colder(logits: np.ndarray) -> np.ndarray:
        return 1.08 * logits

    (finding,) = await ask(CachingEndpoint(spec=ONE, when_warm=colder))
    assert state_of(finding) is State.CHANGED
    assert finding.value is not None
    assert finding.value < 0.05


async def test_a_fault_that_cold_answers_have_too_is_not_the_caches() -> None:
    (finding,) = await ask(
        CachingEndpoint(spec=ONE, corrupt=lambda _ids, logits: roll(logits), when_warm=roll)
    )
    assert (state_of(finding), finding.cause) == (State.OK, Cause.UNKNOWN)
    assert "off already" in finding.message


async def test_where_nothing_shows_a_warm_cache_the_finding_says_so_and_is_no_unknown() -> None:
    (finding,) = await ask(CachingEndpoint(spec=ONE, tells=False))
    assert state_of(finding) is State.OK
    assert "nothing shows that the second answers came from a cache" in finding.message


async def test_a_change_without_a_proof_of_warmth_may_be_another_backend() -> None:
    (finding,) = await ask(CachingEndpoint(spec=ONE, tells=False, when_warm=roll))
    assert (finding.cause, finding.alternatives) == (Cause.NUMERICS, (Cause.MIXTURE,))


async def test_some_warm_answers_that_are_off_and_others_not_are_unknown() -> None:
    @dataclass(eq=False)
    class Sometimes(CachingEndpoint):
        def _row(self, ids: tuple[int, ...], session: str | None, rng: np.random.Generator) -> np.ndarray:
            self.when_warm = roll if len(self.sent) == 5 else lambda logits: logits
            return super()._row(ids, session, rng)

    (finding,) = await ask(Sometimes(spec=ONE))
    assert state_of(finding) is State.UNKNOWN
    assert finding.message.startswith("1 of 4 prompts")


async def test_each_prompt_has_a_session_of_its_own_that_no_other_night_uses() -> None:
    endpoint = CachingEndpoint(spec=ONE)
    await ask(endpoint)
    await ask(endpoint, run="r2")
    sessions = [request.session for request in endpoint.sent]
    assert sessions[:4] == sessions[4:8]
    assert len(set(sessions)) == 8
    assert all(request.extra == {"cache_salt": request.session} for request in endpoint.sent)
    assert [str(r.messages) for r in endpoint.sent[:4]] == [str(r.messages) for r in endpoint.sent[4:8]]


@pytest.mark.parametrize("known", [replace(KNOWN, k=None), replace(KNOWN, trusted=False)])
async def test_without_logprobs_to_trust_nothing_is_asked_and_nothing_said(known: Known) -> None:
    endpoint = CachingEndpoint(spec=ONE)
    assert await ask(endpoint, known=known) == ()
    assert endpoint.sent == []


async def test_an_endpoint_that_promises_less_is_not_asked() -> None:
    endpoint = CachingEndpoint(spec=replace(ONE, context_length=1024))
    assert await ask(endpoint) == ()
    assert endpoint.sent == []
    assert part().planned(endpoint.spec) == []


async def test_a_model_that_takes_no_such_prompt_is_not_asked() -> None:
    short = PrefixCachePart(TinyReference(context_length=512), seed=0, floor_dtype="bf16")
    endpoint = CachingEndpoint(spec=ONE)
    assert await ask(endpoint, short) == ()
    assert (endpoint.sent, short.planned(ONE)) == ([], [])


async def test_an_endpoint_that_refuses_such_prompts_is_not_blamed() -> None:
    endpoint = CachingEndpoint(spec=ONE, fail=lambda _request, _turn: TOO_LONG)
    assert await ask(endpoint) == ()
    assert len(endpoint.sent) <= len(part().planned(ONE))


async def test_an_endpoint_that_goes_away_is_unknown() -> None:
    endpoint = CachingEndpoint(spec=ONE, fail=lambda _request, turn: GONE if turn > 3 else None)
    (finding,) = await ask(endpoint)
    assert state_of(finding) is State.UNKNOWN
    assert "4 more are needed" in finding.message


async def test_other_token_ids_are_withheld_and_not_compared() -> None:
    (finding,) = await ask(CachingEndpoint(spec=ONE, change_ids=lambda ids: ids[1:]))
    assert (state_of(finding), finding.message) == (
        State.UNKNOWN,
        "withheld: the token IDs differ (see tokens)",
    )


async def test_ids_known_by_their_counts_leave_the_prompt_possible() -> None:
    (finding,) = await ask(CachingEndpoint(spec=ONE, shows_ids=False, when_warm=roll))
    assert finding.alternatives == (Cause.PROMPT,)


def test_the_cost_is_each_prompt_twice_and_the_refusals_of_the_first() -> None:
    planned = part(tokens=64).planned(ACME)
    assert len(planned) == 9
    assert [tokens for request, tokens in planned] == [
        len(TinyReference().render(request.messages or ())) for request, _ in planned
    ]


def test_the_basis_depends_on_the_prompts_and_the_floor() -> None:
    parts = [
        part(),
        part(tokens=64),
        part(prompts=5),
        PrefixCachePart(TinyReference(), seed=1, floor_dtype="bf16"),
    ]
    assert len({one.basis for one in parts}) == 4
    assert part().basis == parts[0].basis


def test_fewer_prompts_than_can_be_judged_are_refused() -> None:
    with pytest.raises(ConfigError, match="3 prompts"):
        part(prompts=3)
