from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from evals.truth import FloorTable, Truth
from probes.rotation import Tonight
from ringtrue.records import (
    Cause,
    Check,
    Failure,
    FailureKind,
    Finding,
    Party,
    Request,
    State,
)
from ringtrue.verdict import state_of
from tests.unit.evals.examined import COUNTS, PLAN, Night
from tests.unit.evals.tiny import (
    NOISE,
    TinyEndpoint,
    TinyReference,
    curve_prompts,
)


def states(findings: dict[Check, Finding]) -> dict[Check, State]:
    return {check: state_of(finding) for check, finding in findings.items()}


FINE = dict.fromkeys((Check.LOGPROBS, Check.CONTEXT, Check.TOKENS, Check.IDENTITY, Check.WIRE), State.OK)
SILENT = (Check.LOGPROBS, Check.CONTEXT, Check.IDENTITY)


def roll(logits: np.ndarray) -> np.ndarray:
    return np.roll(logits, 7)


async def test_an_honest_endpoint_is_fine_in_every_check() -> None:
    night = Night()

    assert states(await night.run(TinyEndpoint())) == FINE
    assert sum(night.progress) == 108
    assert len(night.recorded) == 108


async def test_every_prompt_is_asked_once_in_an_order_drawn_from_the_seed_over_all_sessions() -> None:
    one, other = TinyEndpoint(), TinyEndpoint()
    await Night().run(one)
    await Night().run(other, plan=replace(PLAN, seed=1))

    asked = [request.id for request in one.sent]
    assert len(set(asked)) == len(asked) == 108
    assert asked != sorted(asked)
    assert asked != [request.id for request in other.sent]
    assert len({request.session for request in one.sent}) == PLAN.sessions


async def test_a_divergence_everywhere_is_numerics() -> None:
    findings = await Night().run(TinyEndpoint(corrupt=lambda _ids, logits: roll(logits)))

    # No other model is registered, so nothing can be said of identity.
    assert states(findings) == {**FINE, Check.LOGPROBS: State.WORSE, Check.IDENTITY: State.UNKNOWN}
    assert findings[Check.LOGPROBS].cause is Cause.NUMERICS
    assert findings[Check.LOGPROBS].alternatives == (Cause.IDENTITY,)


async def test_a_small_shift_beyond_the_floor_is_a_change() -> None:
    def noisier(ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
        return logits + 2 * NOISE * np.random.default_rng(len(ids)).standard_normal(logits.shape)

    findings = await Night().run(TinyEndpoint(corrupt=noisier))

    assert states(findings)[Check.LOGPROBS] is State.CHANGED


async def test_a_divergence_beyond_a_length_is_context_with_its_onset() -> None:
    endpoint = TinyEndpoint(corrupt=lambda ids, logits: roll(logits) if len(ids) > 1024 else logits)

    findings = await Night().run(endpoint)

    assert states(findings) == {**FINE, Check.CONTEXT: State.WORSE}
    assert (findings[Check.CONTEXT].cause, findings[Check.CONTEXT].onset) == (Cause.CONTEXT, 2048)


async def test_a_cut_beyond_a_length_is_context_with_its_onset() -> None:
    findings = await Night().run(TinyEndpoint(change_ids=lambda ids: ids[-1024:]))

    assert states(findings) == {**FINE, Check.CONTEXT: State.WORSE}
    assert findings[Check.CONTEXT].code == "context.cut"
    assert findings[Check.CONTEXT].onset == 2048


@pytest.mark.parametrize("shows_ids", [True, False])
async def test_a_template_fault_is_prompt_and_never_numerics(shows_ids: bool) -> None:
    endpoint = TinyEndpoint(change_ids=lambda ids: ids[:-1], shows_ids=shows_ids)

    findings = await Night().run(endpoint)

    assert state_of(findings[Check.TOKENS]) is State.WORSE
    assert findings[Check.TOKENS].cause is Cause.PROMPT
    assert state_of(findings[Check.LOGPROBS]) is (State.OK if shows_ids else State.UNKNOWN)
    assert state_of(findings[Check.CONTEXT]) is State.UNKNOWN


async def test_under_a_template_fault_logprobs_are_compared_on_the_servers_own_ids() -> None:
    night = Night()
    findings = await night.run(TinyEndpoint(change_ids=lambda ids: ids[:-1]))

    assert "on the server's own token IDs" in findings[Check.LOGPROBS].message
    assert sum(ids[-1] == 257 for ids in night.reference.asked) == 64


async def test_a_template_fault_with_broken_numerics_shows_both() -> None:
    endpoint = TinyEndpoint(change_ids=lambda ids: ids[:-1], corrupt=lambda _ids, logits: roll(logits))

    findings = await Night().run(endpoint)

    assert findings[Check.TOKENS].cause is Cause.PROMPT
    assert findings[Check.LOGPROBS].cause is Cause.NUMERICS


async def test_ids_outside_the_vocabulary_are_another_model_and_do_not_reach_the_reference() -> None:
    night = Night()
    endpoint = TinyEndpoint(
        change_ids=lambda ids: tuple(9_000 + 3 * i for i in ids), corrupt=lambda _ids, logits: roll(logits)
    )

    findings = await night.run(endpoint)

    assert findings[Check.TOKENS].cause is Cause.IDENTITY
    assert all(max(ids) < 300 for ids in night.reference.asked)


async def test_equal_counts_are_enough_to_compare_and_the_reason_says_so() -> None:
    findings = await Night().run(TinyEndpoint(shows_ids=False))

    assert states(findings) == FINE
    assert "because their counts are" in findings[Check.LOGPROBS].message


async def test_without_ids_and_counts_nothing_is_compared() -> None:
    findings = await Night().run(TinyEndpoint(shows_ids=False, shows_counts=False))

    assert states(findings) == {**dict.fromkeys(FINE, State.UNKNOWN), Check.WIRE: State.OK}
    assert "which token IDs" in findings[Check.LOGPROBS].message


async def test_without_logprobs_the_tokens_are_still_judged() -> None:
    findings = await Night().run(TinyEndpoint(shows_logprobs=False))

    assert states(findings) == {**FINE, **dict.fromkeys(SILENT, State.UNKNOWN)}
    assert findings[Check.LOGPROBS].message == "the server sends no logprobs"


async def test_a_refused_k_is_asked_again_smaller_and_the_refusal_is_kept() -> None:
    def refuse(request: Request, _turn: int) -> Failure | None:
        if (request.logprobs or 0) > 5:
            return Failure(FailureKind.CAPABILITY_REFUSED, "logprobs above 5", Party.CALLER, 400)
        return None

    night = Night()
    findings = await night.run(TinyEndpoint(fail=refuse))

    assert state_of(findings[Check.LOGPROBS]) is State.OK
    assert Counter(e.request.logprobs for e in night.recorded) == {20: 1, 10: 1, 5: 108}


async def test_an_endpoint_that_returns_fewer_than_asked_is_judged_at_its_own_k() -> None:
    assert states(await Night().run(TinyEndpoint(largest_k=3))) == FINE


@pytest.mark.parametrize(
    ("kind", "party"),
    [
        (FailureKind.UNREACHABLE, Party.PROVIDER),
        (FailureKind.TLS, Party.PROVIDER),
        (FailureKind.UNAUTHORIZED, Party.CALLER),
        (FailureKind.MODEL_NOT_FOUND, Party.CALLER),
        (FailureKind.HTML, Party.PROVIDER),
        (FailureKind.BUDGET, Party.CALLER),
    ],
)
async def test_a_failure_that_asking_again_only_repeats_is_met_once_and_everything_unknown(
    kind: FailureKind, party: Party
) -> None:
    failure = Failure(kind, "what was wrong", party)
    endpoint = TinyEndpoint(fail=lambda _request, _turn: failure)
    night = Night()

    findings = await night.run(endpoint)

    assert set(states(findings).values()) == {State.UNKNOWN}
    assert findings[Check.LOGPROBS].message == "what was wrong"
    assert len(endpoint.sent) == 1
    assert sum(night.progress) == 108


async def test_eight_failures_in_a_row_end_the_asking_and_keep_what_was_measured() -> None:
    def fail(_request: Request, turn: int) -> Failure | None:
        return Failure(FailureKind.SERVER_ERROR, "HTTP 500", Party.PROVIDER, 500) if turn > 70 else None

    endpoint = TinyEndpoint(fail=fail)
    night = Night()
    findings = await night.run(endpoint)

    assert 70 + PLAN.give_up_after <= len(endpoint.sent) < 90
    assert sum(o.metric == "kl" for o in night.observations) == 70
    assert state_of(findings[Check.LOGPROBS]) is State.OK
    assert state_of(findings[Check.WIRE]) is State.WORSE
    assert sum(night.progress) == 108


async def test_a_failed_request_is_an_observation_and_counts_against_the_wire() -> None:
    def fail(_request: Request, turn: int) -> Failure | None:
        return Failure(FailureKind.RATE_LIMITED, "HTTP 429", Party.PROVIDER, 429) if turn % 5 == 0 else None

    night = Night()
    findings = await night.run(TinyEndpoint(fail=fail))

    answered = [o.value for o in night.observations if o.metric == "answered"]
    assert Counter(answered) == {1.0: 87, 0.0: 21}
    assert state_of(findings[Check.WIRE]) is State.WORSE
    assert findings[Check.WIRE].interval is not None
    assert "21 rate limited" in findings[Check.WIRE].message


async def test_another_model_name_in_the_answers_is_said_and_is_no_fault_by_itself() -> None:
    alias = await Night().run(TinyEndpoint(answers_as="tiny-2026-03-01"))
    same = await Night().run(TinyEndpoint())

    assert states(alias) == FINE
    assert "name the model tiny-2026-03-01" in alias[Check.WIRE].message
    assert "name the model" not in same[Check.WIRE].message


async def test_too_few_prompts_are_unknown_and_say_how_many_are_needed() -> None:
    findings = await Night().run(TinyEndpoint(), {32: 20})

    assert state_of(findings[Check.LOGPROBS]) is State.UNKNOWN
    assert "64 are needed: 44 more" in findings[Check.LOGPROBS].message


async def test_a_length_beyond_the_promised_context_is_not_asked() -> None:
    endpoint = TinyEndpoint(promised=1000)
    night = Night()

    findings = await night.run(endpoint)

    assert states(findings) == FINE
    assert len(endpoint.sent) == 104
    assert "up to 512 tokens" in findings[Check.CONTEXT].message


async def test_a_promise_too_short_for_every_prompt_is_said() -> None:
    findings = await Night().run(TinyEndpoint(promised=16))

    assert set(states(findings).values()) == {State.UNKNOWN}
    assert "takes 16 tokens and the shortest has 47" in findings[Check.LOGPROBS].message


async def test_a_reference_that_differs_from_itself_judges_nobody() -> None:
    findings = await Night(TinyReference(self_noise=0.01)).run(TinyEndpoint())

    assert state_of(findings[Check.LOGPROBS]) is State.UNKNOWN
    assert "differs from itself" in findings[Check.LOGPROBS].message
    assert state_of(findings[Check.TOKENS]) is State.OK


async def test_a_share_of_faulty_sessions_is_a_mixture() -> None:
    endpoint = TinyEndpoint()
    sent = endpoint.sent

    def in_some_sessions(_ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
        return roll(logits) if sent[-1].session in ("s1", "s4", "s6") else logits

    endpoint.corrupt = in_some_sessions
    findings = await Night().run(endpoint)

    assert findings[Check.LOGPROBS].cause is Cause.MIXTURE


async def test_the_curve_is_observed_bucket_by_bucket_with_its_floor() -> None:
    night = Night()
    await night.run(TinyEndpoint())

    for metric in ("kl_mean", "kl_floor_mean", "top1_agreement", "unseen_mean"):
        curve = {o.context_length: o.n for o in night.observations if o.metric == metric}
        assert curve == COUNTS
    assert all(o.run == "r1" and o.endpoint == "acme" for o in night.observations)


async def test_findings_and_observations_hold_no_content() -> None:
    night = Night()
    await night.run(TinyEndpoint(change_ids=lambda ids: ids[:-1]))
    assert night.examination is not None

    told = repr(night.examination.findings) + repr(night.observations)

    assert "0001bbbb" not in told
    assert "abcdefg"[0] * 20 not in told


@dataclass
class DictCache:
    kept: dict[str, FloorTable] = field(default_factory=dict)

    async def get(self, key: str) -> FloorTable | None:
        return self.kept.get(key)

    async def put(self, key: str, table: FloorTable) -> None:
        self.kept[key] = table


async def test_a_cached_floor_is_the_floor_that_was_measured() -> None:
    cache = DictCache()
    prompts = curve_prompts({32: 4})
    measured = await Truth(TinyReference(), prompts, floor_dtype="bf16", k=20, seed=0, cache=cache).floors()

    class NoFloor(TinyReference):
        async def jittered(self, *_: object, **__: object) -> list[np.ndarray]:
            raise AssertionError("asked again")

    cached = await Truth(NoFloor(), prompts, floor_dtype="bf16", k=20, seed=0, cache=cache).floors()

    assert {key: (a.cells, a.logprobs) for key, a in measured.items()} == {
        key: (a.cells, a.logprobs) for key, a in cached.items()
    }


async def test_what_takes_turns_has_floors_of_its_own_and_does_not_change_the_basis() -> None:
    cache = DictCache()
    steady, turning = curve_prompts({32: 4}), curve_prompts({512: 3})
    nights = [
        Truth(
            reference := TinyReference(),
            Tonight(steady, turning[turn : turn + 1], "drawn from"),
            floor_dtype="bf16",
            k=20,
            seed=0,
            cache=cache,
        )
        for turn in (0, 1, 0)
    ]
    floors = [await night.floors() for night in nights]

    assert len(cache.kept) == 3  # one of the steady prompts, and one of each that took its turn
    assert floors[0].keys() == {prompt.id for prompt in (*steady, turning[0])}
    assert [night.basis for night in nights] == [nights[0].basis] * 3
    alone = Truth(reference, steady, floor_dtype="bf16", k=20, seed=0)
    assert alone.basis != nights[0].basis


async def test_another_dtype_k_or_prompt_set_is_another_floor() -> None:
    prompts = curve_prompts({32: 4})
    keys = {
        Truth(TinyReference(), some, floor_dtype=dtype, k=k, seed=seed).basis
        for some, dtype, k, seed in (
            (prompts, "bf16", 20, 0),
            (prompts, "fp16", 20, 0),
            (prompts, "bf16", 5, 0),
            (prompts, "bf16", 20, 1),
            (prompts[:3], "bf16", 20, 0),
        )
    }

    assert len(keys) == 5


async def test_an_honest_endpoint_stays_fine_over_twenty_seeds() -> None:
    for seed in range(20):
        findings = await Night().run(TinyEndpoint(seed=seed), plan=replace(PLAN, seed=seed))

        assert states(findings) == FINE


async def test_an_endpoint_that_refuses_logprobs_is_asked_without_and_judged_by_its_tokens() -> None:
    refusal = Failure(FailureKind.CAPABILITY_REFUSED, "no logprobs here", Party.PROVIDER, 400)
    endpoint = TinyEndpoint(fail=lambda request, _: refusal if request.logprobs else None)
    findings = await Night().run(endpoint)

    assert states(findings) == {**FINE, **dict.fromkeys(SILENT, State.UNKNOWN)}
    assert [request.logprobs for request in endpoint.sent[:6]] == [20, 10, 5, 1, None, None]
    assert findings[Check.WIRE].n == 108
