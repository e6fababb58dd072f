from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from evals.curve_numbers import Scribe
from evals.parts.asker import GIVE_UP_AFTER, Asker
from evals.parts.part import Known
from evals.parts.sessions.part import CHUNK, SessionsPart
from evals.truth import FloorTable
from probes.budget import prompt_tokens_at_most
from ringtrue.errors import ConfigError
from ringtrue.records import (
    Cause,
    Check,
    Failure,
    FailureKind,
    Finding,
    Limits,
    Observation,
    Party,
    Request,
    Severity,
    State,
)
from ringtrue.verdict import state_of
from tests.unit.evals.tiny import ACME, TinyEndpoint, TinyReference, still_clock

KNOWN = Known(k=20, trusted=True, scaling=None, logprobs=State.OK)
REFUSED = Failure(FailureKind.REFUSED, "acme: HTTP 400: unknown field", Party.CALLER, status=400)
GONE = Failure(FailureKind.UNREACHABLE, "acme: cannot connect", Party.PROVIDER)


@dataclass
class Kept:
    """A floor cache in memory."""

    tables: dict[str, FloorTable] = field(default_factory=dict)

    async def get(self, key: str) -> FloorTable | None:
        return self.tables.get(key)

    async def put(self, key: str, table: FloorTable) -> None:
        self.tables[key] = table


@dataclass
class Night:
    """One part asked of one endpoint, and the numbers it handed on."""

    seed: int = 0
    run: str = "r1"
    reference: TinyReference = field(default_factory=TinyReference)
    observations: list[Observation] = field(default_factory=list)
    progress: list[int] = field(default_factory=list)

    def part(self, **settings: Any) -> SessionsPart:
        fewer = {"calibration": 120} | settings  # than by default, for speed
        return SessionsPart(self.reference, seed=self.seed, floor_dtype="bf16", **fewer)

    async def ask(
        self, endpoint: TinyEndpoint, part: SessionsPart | None = None, known: Known = KNOWN
    ) -> tuple[Finding, ...]:
        asker = Asker(
            endpoint,
            Scribe(endpoint.spec.name, self.run, "sessions"),
            seed=self.seed,
            clock=still_clock(),
            emit=self._emit,
            on_progress=self.progress.append,
            record=None,
        )
        return await (part or self.part()).examine(asker, known)

    async def _emit(self, observations: Sequence[Observation]) -> None:
        self.observations += observations

    def number(self, metric: str) -> Observation:
        (one,) = [o for o in self.observations if o.metric == metric]
        return one


def roll(_ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
    return np.roll(logits, 7)


def some(share: float) -> Any:
    """Sessions of this share, by their keys."""
    return lambda session: session is not None and int(session[:8], 16) < share * 2**32


async def test_an_honest_endpoint_has_no_session_that_stands_out() -> None:
    night = Night()
    (finding,) = await night.ask(TinyEndpoint())
    assert (state_of(finding), finding.n, finding.check) == (State.OK, 125, Check.SESSIONS)
    assert finding.code == "sessions.alike"
    assert finding.detectable_effect == pytest.approx(0.0497, abs=1e-3)
    assert "124 sessions show a share of 5 %" in finding.message
    assert "785 one of 0.8 %" in finding.message
    number = night.number("bad_sessions")
    assert (number.value, number.unit, number.n, number.probe) == (0.0, "share", 125, "sessions")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
async def test_a_share_of_sessions_with_another_model_is_a_mixture_wherever_the_majority_lies(
    share: float,
) -> None:
    endpoint = TinyEndpoint(corrupt=roll, corrupts=some(share))
    night = Night()
    (finding,) = await night.ask(endpoint)
    assert (state_of(finding), finding.severity, finding.cause) == (
        State.CHANGED,
        Severity.WARN,
        Cause.MIXTURE,
    )
    bad = [session for session in dict.fromkeys(r.session for r in endpoint.sent) if some(share)(session)]
    assert finding.evidence["sessions"] == bad[:16]
    number = night.number("bad_sessions")
    assert (number.value * number.n, number.n) == (pytest.approx(len(bad)), finding.n)


async def test_the_asking_stops_once_it_is_decided() -> None:
    endpoint = TinyEndpoint(corrupt=roll, corrupts=some(0.3))
    (finding,) = await Night().ask(endpoint)
    assert finding.n == CHUNK
    assert len(endpoint.sent) == 2 * CHUNK


async def test_a_fault_in_every_session_is_no_mixture() -> None:
    (finding,) = await Night().ask(TinyEndpoint(corrupt=roll))
    assert (state_of(finding), finding.evidence["everywhere"]) == (State.OK, True)
    assert "no mixture" in finding.message


async def test_an_endpoint_that_is_everywhere_a_little_off_is_no_mixture() -> None:
    def noisier(ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
        return logits + 0.1 * np.random.default_rng(len(ids)).standard_normal(logits.shape)

    (finding,) = await Night().ask(TinyEndpoint(corrupt=noisier))
    assert state_of(finding) is State.OK
    assert finding.evidence["bad"] == 0


async def test_a_mixture_shows_behind_an_endpoint_that_is_everywhere_a_little_off() -> None:
    bad = some(0.2)
    base = np.random.default_rng(1).standard_normal(300)

    class Pool(TinyEndpoint):
        def _row(self, ids: tuple[int, ...], session: str | None, rng: np.random.Generator) -> np.ndarray:
            self.corrupt = roll if bad(session) else lambda _ids, logits: logits + 0.1 * base
            return super()._row(ids, session, rng)

    (finding,) = await Night().ask(Pool())
    assert (state_of(finding), finding.cause) == (State.CHANGED, Cause.MIXTURE)


@pytest.mark.parametrize("known", [replace(KNOWN, k=None), replace(KNOWN, trusted=False)])
async def test_without_logprobs_to_trust_nothing_is_asked_and_nothing_said(known: Known) -> None:
    endpoint = TinyEndpoint()
    assert await Night().ask(endpoint, known=known) == ()
    assert endpoint.sent == []


async def test_fewer_logprobs_are_held_against_honest_sessions_with_as_few() -> None:
    endpoint = TinyEndpoint(largest_k=8)
    (finding,) = await Night().ask(endpoint, known=replace(KNOWN, k=8))
    assert state_of(finding) is State.OK
    assert {request.logprobs for request in endpoint.sent} == {5}


async def test_each_session_asks_the_same_prompts_one_after_the_other_and_never_is_one_twice() -> None:
    part = Night().part()
    endpoint = TinyEndpoint()
    await Night().ask(endpoint, part)
    await Night(run="r2").ask(endpoint, part)
    by_session: dict[str | None, list[Request]] = defaultdict(list)
    for request in endpoint.sent:
        by_session[request.session].append(request)
    assert len(by_session) == 250
    assert len({tuple(str(r.messages) for r in rs) for rs in by_session.values()}) == 1
    assert all(len({r.id for r in rs}) == 2 for rs in by_session.values())
    assert all(r.extra == {"cache_salt": r.session} for r in endpoint.sent)
    abreast = ACME.limits.max_in_flight
    first = [request.session for request in endpoint.sent[: 2 * abreast]]
    assert first[:abreast] == first[abreast:]


async def test_a_server_that_refuses_every_field_for_the_key_is_asked_without() -> None:
    endpoint = TinyEndpoint(
        spec=replace(ACME, dialect="openai"), fail=lambda request, _turn: REFUSED if request.extra else None
    )
    (finding,) = await Night().ask(endpoint)
    assert (state_of(finding), finding.n) == (State.OK, 125)
    assert [set(request.extra) for request in endpoint.sent[:3]] == [{"prompt_cache_key"}, {"user"}, set()]
    assert not any(request.extra for request in endpoint.sent[3:])
    assert len(endpoint.sent) == len(Night().part().planned(endpoint.spec))


async def test_too_few_sessions_are_unknown_and_say_how_many_are_needed() -> None:
    night = Night()
    (finding,) = await night.ask(TinyEndpoint(), night.part(sessions=30))
    assert state_of(finding) is State.UNKNOWN
    assert "124 sessions" in finding.message
    assert finding.detectable_effect is not None


async def test_too_few_honest_sessions_are_unknown() -> None:
    night = Night()
    (finding,) = await night.ask(TinyEndpoint(), night.part(calibration=50))
    assert state_of(finding) is State.UNKNOWN
    assert "100" in finding.message


async def test_other_token_ids_are_withheld_and_not_compared() -> None:
    night = Night()
    endpoint = TinyEndpoint(change_ids=lambda ids: ids[1:])
    (finding,) = await night.ask(endpoint)
    assert state_of(finding) is State.UNKNOWN
    assert finding.message == "withheld: the token IDs differ (see tokens)"
    assert len(endpoint.sent) == 2 * CHUNK
    assert not [o for o in night.observations if o.metric == "bad_sessions"]


async def test_ids_known_by_their_counts_leave_the_prompt_possible() -> None:
    (finding,) = await Night().ask(TinyEndpoint(corrupt=roll, corrupts=some(0.3), shows_ids=False))
    assert (finding.cause, finding.alternatives) == (Cause.MIXTURE, (Cause.PROMPT,))


async def test_answers_that_show_nothing_of_their_ids_are_left_out() -> None:
    (finding,) = await Night().ask(TinyEndpoint(shows_ids=False, shows_counts=False))
    assert (state_of(finding), finding.n) == (State.UNKNOWN, 0)
    assert "250 not comparable" in finding.message


async def test_an_endpoint_that_goes_away_is_not_asked_on() -> None:
    endpoint = TinyEndpoint(fail=lambda _request, turn: GONE if turn > 60 else None)
    (finding,) = await Night().ask(endpoint)
    assert (state_of(finding), finding.message) == (State.UNKNOWN, GONE.message)
    assert len(endpoint.sent) <= 60 + GIVE_UP_AFTER + ACME.limits.max_in_flight


async def test_single_failures_cost_their_session_only() -> None:
    endpoint = TinyEndpoint(fail=lambda _request, turn: GONE if turn % 50 == 49 else None)
    (finding,) = await Night().ask(endpoint, Night().part(sessions=150))
    assert (state_of(finding), finding.n) == (State.OK, 144)


async def test_honest_sessions_are_drawn_once_and_kept_between_nights() -> None:
    cache = Kept()
    first = Night()
    (finding,) = await first.ask(TinyEndpoint(), first.part(cache=cache))
    second = Night()
    (again,) = await second.ask(TinyEndpoint(), second.part(cache=cache))
    assert again == finding
    assert len(cache.tables) == 1
    # The exact row of each prompt is still asked, those of the candidates are not.
    assert len(set(second.reference.asked)) == 2


async def test_a_kept_draw_of_another_shape_is_drawn_again() -> None:
    cache = Kept()
    night = Night()
    await night.ask(TinyEndpoint(), night.part(cache=cache))
    (key,) = cache.tables
    cache.tables[key] = {"unknown": [[0.1]]}
    (finding,) = await night.ask(TinyEndpoint(), night.part(cache=cache))
    assert state_of(finding) is State.OK
    assert "unknown" not in cache.tables[key]


def test_the_basis_depends_on_what_the_numbers_depend_on() -> None:
    parts = [
        Night().part(),
        Night(seed=1).part(),
        Night().part(prompts=3),
        Night().part(calibration=300),
        Night(reference=TinyReference(fingerprint="e" * 64)).part(),
        SessionsPart(TinyReference(), seed=0, floor_dtype="fp16", calibration=120),
    ]
    assert len({part.basis for part in parts}) == len(parts)
    assert Night().part().basis == parts[0].basis


def test_the_cost_covers_every_session_and_the_refusals_of_the_first_request() -> None:
    part = Night().part()
    planned = part.planned(ACME)
    assert len(planned) == 2 * 125 + 1
    assert len({request.session for request, _ in planned}) == 125
    rendered = [len(TinyReference().render(request.messages or ())) for request, _ in planned]
    assert [tokens for _, tokens in planned] == rendered
    assert all(prompt_tokens_at_most(request) > 0 for request, _ in planned)


@pytest.mark.parametrize("settings", [{"sessions": 0}, {"prompts": 0}, {"k": 0}])
def test_numbers_that_ask_nothing_are_refused(settings: Mapping[str, int]) -> None:
    with pytest.raises(ConfigError, match="can't be asked"):
        Night().part(**settings)


async def test_more_in_flight_ask_more_sessions_side_by_side() -> None:
    endpoint = TinyEndpoint(spec=replace(ACME, limits=Limits(max_in_flight=25)))
    await Night().ask(endpoint)
    asked = [str(request.messages) for request in endpoint.sent[1:51]]
    assert len(set(asked[:24])) == 1
    assert len(set(asked[24:49])) == 1
