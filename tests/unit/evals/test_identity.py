import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from evals.answers import against, read, row_of
from evals.curve_numbers import Measured
from evals.identity import Registered, identity, register
from evals.truth import Truth
from logprob_drift.context_curve import Curve, trace
from logprob_drift.identity import NEEDS
from logprob_drift.identity_findings import Identified
from probes.context_curve import to_request
from probes.dialects import dialect_named
from ringtrue.endpoint import LogprobRow
from ringtrue.records import Cause, Check, Party, State
from ringtrue.verdict import state_of
from tests.unit.evals.tiny import (
    NOISE,
    SIZE,
    TinyEndpoint,
    TinyReference,
    curve_prompts,
    log_softmax,
    logits_of,
)

K = 20


def changed(amount: float, seed: int) -> Callable[[tuple[int, ...], np.ndarray], np.ndarray]:
    """Other weights: what they add to the logits depends on the prompt alone."""

    def corrupt(ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng([seed, zlib.crc32(repr(tuple(ids)).encode())])
        return logits + amount * rng.standard_normal(logits.shape)

    return corrupt


@dataclass
class OtherReference(TinyReference):
    """Another checkpoint of the tiny model."""

    model: str = "other"
    amount: float = 0.8
    weights: int = 5

    async def next_token(self, ids: Sequence[int]) -> LogprobRow:
        self.asked.append(tuple(ids))
        return log_softmax(changed(self.amount, self.weights)(tuple(ids), logits_of(ids)))


@dataclass
class Night:
    """One endpoint, asked all prompts, and what it then is."""

    counts: Mapping[int, int] = field(default_factory=lambda: {32: 64, 128: 16})
    reference: TinyReference = field(default_factory=TinyReference)

    async def measure(self, endpoint: TinyEndpoint) -> tuple[Truth, list[Measured], Curve]:
        prompts = curve_prompts(self.counts)
        truth = Truth(self.reference, prompts, floor_dtype="bf16", k=K, seed=0)
        floors = await truth.floors()
        measured = []
        for prompt in prompts:
            exchange = await endpoint.send(to_request(prompt, k=K, dialect=dialect_named("vllm")))
            answer = read(prompt, exchange, truth.expected[prompt.id], truth.vocabulary, asked=K)
            row = await truth.row(prompt)
            divergence = against(answer, row)
            measured.append(Measured(answer, divergence, row_of(answer, divergence, row, floors[prompt.id])))
        rng = np.random.default_rng(0)
        return truth, measured, trace([one.row for one in measured], list(self.counts), rng)

    async def run(
        self, endpoint: TinyEndpoint, registered: Registered, *, alike: bool | None = True
    ) -> Identified:
        truth, measured, curve = await self.measure(endpoint)
        rng = np.random.default_rng(0)
        return await identity("acme", measured, curve, registered, truth, rng, sessions_alike=alike)


def registered(*others: TinyReference) -> Registered:
    return register(TinyReference(), others)


SERVES_OTHER = changed(0.8, 5)
SERVES_COARSE = changed(0.7, 11)


async def test_within_the_floor_it_is_the_reference_and_no_model_is_asked() -> None:
    other = OtherReference()
    found = await Night().run(TinyEndpoint(), registered(other))

    assert state_of(found.finding) is State.OK
    assert found.finding.check is Check.IDENTITY
    assert found.finding.detectable_effect is not None
    assert found.other_model_fits is False
    assert other.asked == []


async def test_a_fault_beyond_a_length_is_no_other_model() -> None:
    other = OtherReference()
    endpoint = TinyEndpoint(corrupt=lambda ids, x: np.roll(x, 7) if len(ids) > 256 else x)
    found = await Night({32: 64, 512: 16}).run(endpoint, registered(other))

    assert state_of(found.finding) is State.OK
    assert "below 512 tokens" in found.finding.message
    assert other.asked == []


async def test_another_model_is_identity_and_is_named() -> None:
    found = await Night().run(TinyEndpoint(corrupt=SERVES_OTHER), registered(OtherReference()))

    assert state_of(found.finding) is State.WORSE
    assert (found.finding.cause, found.finding.alternatives) == (Cause.IDENTITY, ())
    assert found.finding.party is Party.PROVIDER
    assert "it answers as other and not as tiny" in found.finding.message
    assert found.other_model_fits is True
    assert found.finding.n == 64
    assert found.finding.interval is not None


async def test_sessions_that_nobody_compared_leave_a_mixture_possible() -> None:
    found = await Night().run(TinyEndpoint(corrupt=SERVES_OTHER), registered(OtherReference()), alike=None)

    assert found.finding.alternatives == (Cause.MIXTURE,)


async def test_equal_counts_of_ids_leave_the_prompt_possible() -> None:
    endpoint = TinyEndpoint(corrupt=SERVES_OTHER, shows_ids=False)
    found = await Night().run(endpoint, registered(OtherReference()))

    assert found.finding.cause is Cause.IDENTITY
    assert found.finding.alternatives == (Cause.PROMPT,)


async def test_another_model_in_a_coarser_precision_is_still_named() -> None:
    def coarser(ids: tuple[int, ...], logits: np.ndarray) -> np.ndarray:
        return changed(0.3, 12)(ids, SERVES_OTHER(ids, logits))

    found = await Night().run(TinyEndpoint(corrupt=coarser), registered(OtherReference()))

    assert found.other_model_fits is True


async def test_only_the_shortest_prompts_are_asked() -> None:
    other = OtherReference()
    await Night().run(TinyEndpoint(corrupt=SERVES_OTHER), registered(other))

    assert len(other.asked) == 64
    assert max(map(len, other.asked)) < 64


async def test_a_variant_of_the_reference_is_numerics_with_its_name() -> None:
    variant = OtherReference(model="tiny@int4", amount=0.7, weights=11)
    found = await Night().run(TinyEndpoint(corrupt=SERVES_COARSE), registered(OtherReference(), variant))

    assert state_of(found.finding) is State.OK
    assert (found.other_model_fits, found.variant) == (False, "tiny@int4")
    assert "it is tiny itself, computed as tiny@int4" in found.finding.message


async def test_a_divergence_that_no_registered_model_explains_leaves_the_answer_open() -> None:
    found = await Night().run(TinyEndpoint(corrupt=SERVES_COARSE), registered(OtherReference()))

    assert state_of(found.finding) is State.UNKNOWN
    assert "other explains the answers no better than tiny" in found.finding.message
    assert found.other_model_fits is None
    assert found.finding.detectable_effect is not None


async def test_a_model_that_is_only_closer_is_not_it() -> None:
    endpoint = TinyEndpoint(corrupt=SERVES_OTHER)
    found = await Night().run(endpoint, registered(OtherReference(amount=0.2)))

    assert state_of(found.finding) is State.UNKNOWN
    assert "closer to other than to tiny, but not it" in found.finding.message
    assert found.other_model_fits is None


async def test_a_model_and_a_variant_that_explain_alike_leave_the_answer_open() -> None:
    variant = OtherReference(model="tiny@int4")
    found = await Night().run(TinyEndpoint(corrupt=SERVES_OTHER), registered(OtherReference(), variant))

    assert state_of(found.finding) is State.UNKNOWN
    assert "equally well" in found.finding.message
    assert found.other_model_fits is None


async def test_without_registered_models_a_divergence_says_what_to_register() -> None:
    found = await Night().run(TinyEndpoint(corrupt=SERVES_OTHER), Registered())

    assert state_of(found.finding) is State.UNKNOWN
    assert "reference.others" in found.finding.message
    assert found.other_model_fits is None


async def test_a_model_with_another_vocabulary_is_named_and_stays_possible() -> None:
    foreign = OtherReference(model="foreign", vocabulary_size=SIZE + 1)
    found = await Night().run(TinyEndpoint(corrupt=SERVES_COARSE), registered(OtherReference(), foreign))

    assert "foreign can't be compared: its vocabulary has 301 tokens and not 300" in found.finding.message
    assert found.other_model_fits is None
    assert foreign.asked == []


async def test_a_model_that_does_not_take_the_prompts_is_named() -> None:
    short = OtherReference(context_length=40)
    found = await Night().run(TinyEndpoint(corrupt=SERVES_OTHER), registered(short))

    assert state_of(found.finding) is State.UNKNOWN
    assert "no registered model can be compared" in found.finding.message
    assert "it takes 40 tokens" in found.finding.message


async def test_other_token_ids_are_withheld() -> None:
    other = OtherReference()
    endpoint = TinyEndpoint(corrupt=SERVES_OTHER, change_ids=lambda ids: ids[:-1])
    found = await Night().run(endpoint, registered(other))

    assert state_of(found.finding) is State.UNKNOWN
    assert "withheld" in found.finding.message
    assert other.asked == []


async def test_too_few_prompts_say_how_many_are_missing() -> None:
    found = await Night({32: 10}).run(TinyEndpoint(), registered(OtherReference()))

    assert state_of(found.finding) is State.UNKNOWN
    assert "54 more prompts are needed" in found.finding.message


async def test_a_curve_that_diverges_on_too_few_prompts_for_identity_says_so() -> None:
    night = Night({32: 64})
    truth, measured, curve = await night.measure(TinyEndpoint(corrupt=SERVES_OTHER))
    rng = np.random.default_rng(0)
    found = await identity("acme", measured[: NEEDS - 3], curve, registered(OtherReference()), truth, rng)

    assert "only 13 prompts could be compared and 16 are needed: 3 more" in found.finding.message


async def test_the_finding_holds_no_content() -> None:
    found = await Night().run(TinyEndpoint(corrupt=SERVES_OTHER), registered(OtherReference()))

    assert "0001" not in repr(found.finding.evidence).replace("0.0001", "")
    assert set(found.finding.evidence) == {"divergence", "models", "left_out"}


@pytest.mark.parametrize(
    "name", ["tiny@int4", "tiny@int8:layers=1", "tiny@rope:base=5e5", "tiny@tuned:noise=0.1"]
)
def test_the_same_checkpoint_otherwise_computed_is_a_variant(name: str) -> None:
    assert registered(OtherReference(model=name)).variants == {name}


@pytest.mark.parametrize("name", ["other", "other@int4", "tiny@tuned:steps=1:rate=1e-4+int4"])
def test_another_base_or_a_trained_one_is_no_variant(name: str) -> None:
    found = registered(OtherReference(model=name))

    assert (list(found.references), found.variants) == ([name], frozenset())


def test_a_trained_reference_has_its_own_precisions_as_variants() -> None:
    trained = "tiny@tuned:steps=1:rate=1e-4"
    others = [OtherReference(model=f"{trained}+int4"), OtherReference(model="tiny@int4")]

    assert register(TinyReference(model=trained), others).variants == {f"{trained}+int4"}


def test_an_id_that_one_tokenizer_does_not_use_is_no_difference() -> None:
    class Padded(OtherReference):
        def token_bytes(self, token_id: int) -> bytes:
            return b"" if token_id > 290 else super().token_bytes(token_id)

    class Swapped(OtherReference):
        def token_bytes(self, token_id: int) -> bytes:
            return super().token_bytes({65: 66, 66: 65}.get(token_id, token_id))

    found = registered(Padded(model="padded"), Swapped(model="swapped"))

    assert list(found.references) == ["padded"]
    assert found.incomparable == {"swapped": "its tokenizer gives 2 IDs another meaning"}


@pytest.mark.parametrize("others", [1, 5])
async def test_a_noisier_endpoint_is_never_another_model_over_four_seeds(others: int) -> None:
    models = [OtherReference(model=f"other-{i}", weights=20 + i) for i in range(others)]
    for seed in range(4):
        endpoint = replace(TinyEndpoint(seed=seed), corrupt=changed(3 * NOISE, 40 + seed))
        found = await Night().run(endpoint, registered(*models))

        assert found.other_model_fits is None
        assert state_of(found.finding) is State.UNKNOWN
