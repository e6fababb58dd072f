"""Which model is it? Answers that diverge everywhere, held against other registered models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evals.availability import unmeasured
from evals.curve_numbers import Measured
from evals.truth import Truth
from logprob_drift.alignment import Aligned
from logprob_drift.context_curve import Curve, missing
from logprob_drift.identity import NEEDS, Identity, judge, unexplained
from logprob_drift.identity_findings import Case, Identified, conclude, state_everywhere, within_floor
from logprob_drift.night import POOL_NEEDS
from reference_engine.models.changes import Training
from reference_engine.models.names import parse_name
from ringtrue.causes import Divergence, Ids, Symptoms
from ringtrue.endpoint import Reference
from ringtrue.records import Check, Party, State
from tokenizer_checks.comparison import Kind


@dataclass(frozen=True, slots=True)
class Registered:
    """The models that an endpoint may be serving instead of the reference, by name.

    ``variants`` are those with the reference's own checkpoint, in another
    precision or otherwise changed but not trained. ``incomparable`` says of each model whose logprobs can't
    be held beside the reference's why not; such a model stays possible.
    """

    references: Mapping[str, Reference] = field(default_factory=dict)
    variants: frozenset[str] = frozenset()
    incomparable: Mapping[str, str] = field(default_factory=dict)


def register(reference: Reference, others: Iterable[Reference]) -> Registered:
    """Return ``others`` as the models registered beside ``reference``.

    Compares whole vocabularies: a fraction of a second each, so not for an
    event loop.

    Raises:
        ModelError: a name cannot be parsed.
    """
    found = {other.model: other for other in others}
    if not found:
        return Registered()
    own = _tokens(reference)
    why = {name: reason for name, other in found.items() if (reason := _foreign(own, _tokens(other)))}
    comparable = {name: other for name, other in found.items() if name not in why}
    checkpoint = _checkpoint(reference.model)
    variants = frozenset(name for name in comparable if _checkpoint(name) == checkpoint)
    return Registered(comparable, variants, why)


def _checkpoint(model: str) -> tuple[str, Training | None]:
    """Return the base and how it was trained further: equal for all roundings of the same weights."""
    name = parse_name(model)
    return name.base, name.tuned if isinstance(name.tuned, Training) else None


def _tokens(reference: Reference) -> list[bytes]:
    return [reference.token_bytes(token_id) for token_id in range(reference.vocabulary_size)]


def _foreign(own: Sequence[bytes], other: Sequence[bytes]) -> str | None:
    """Return how the vocabularies differ; an ID that one of them does not use is no difference."""
    if len(own) != len(other):
        return f"its vocabulary has {len(other):,} tokens and not {len(own):,}"
    differing = sum(bool(a and b) and a != b for a, b in zip(own, other, strict=True))
    return f"its tokenizer gives {differing:,} IDs another meaning" if differing else None


async def identity(
    endpoint: str,
    measured: Sequence[Measured],
    curve: Curve,
    registered: Registered,
    truth: Truth,
    rng: np.random.Generator,
    *,
    sessions_alike: bool | None = None,
) -> Identified:
    """Return which model ``endpoint`` serves, as far as the registered ones can tell.

    ``curve`` is that of the same ``measured`` prompts. Within its noise floor,
    or with a fault that begins at a length, the model is the reference and
    nothing is asked. Beyond it each registered model is asked for the row
    after up to `POOL_NEEDS` of the shortest prompts whose token IDs were the
    expected ones; the endpoint is asked nothing. Logprobs that are not to be
    trusted must not be given. ``sessions_alike`` is as in `Symptoms`.

    Raises:
        UsageError, MeasureError: as ``Reference.next_token``.
    """
    state = state_everywhere(curve)
    model = truth.reference.model
    if state is State.OK:
        return within_floor(endpoint, curve, model)
    if state is State.UNKNOWN:
        return _unknown(endpoint, f"{missing(curve.below)} more prompts are needed (see logprobs)")
    if not registered.references and not registered.incomparable:
        return _unknown(
            endpoint,
            f"it diverges from {model} and no other model is registered: name the models that it may be, "
            "or the precisions, in reference.others of ringtrue.toml",
            Party.CALLER,
        )
    chosen = _shortest(measured)
    if len(chosen) < NEEDS:
        return _unknown(endpoint, _too_few(chosen, measured))
    fitting, short = _long_enough(registered, truth, chosen)
    found = await _compare(chosen, fitting, truth, rng)
    left_out = {**registered.incomparable, **short}
    symptoms = _symptoms(chosen, sessions_alike)
    return conclude(Case(endpoint, model, state, symptoms, registered.variants, left_out), found)


def _unknown(endpoint: str, reason: str, party: Party = Party.UNKNOWN) -> Identified:
    return Identified(unmeasured(endpoint, Check.IDENTITY, reason, party))


def _shortest(measured: Sequence[Measured]) -> list[Measured]:
    usable = [one for one in measured if one.answer.comparable]
    return sorted(usable, key=lambda one: one.answer.comparison.expected)[:POOL_NEEDS]


def _too_few(chosen: Sequence[Measured], measured: Sequence[Measured]) -> str:
    if len(chosen) < len(measured):
        return "withheld: the token IDs differ (see tokens)"
    return f"only {len(chosen)} prompts could be compared and {NEEDS} are needed: {NEEDS - len(chosen)} more"


def _long_enough(
    registered: Registered, truth: Truth, chosen: Sequence[Measured]
) -> tuple[dict[str, Reference], dict[str, str]]:
    """Divide the comparable models into those that take the prompts and those that do not."""
    longest = max(len(truth.expected[one.answer.prompt.id]) for one in chosen)
    fitting = {name: r for name, r in registered.references.items() if r.context_length >= longest}
    short = {
        name: f"it takes {r.context_length:,} tokens and the prompts have up to {longest:,}"
        for name, r in registered.references.items()
        if name not in fitting
    }
    return fitting, short


def _symptoms(chosen: Sequence[Measured], sessions_alike: bool | None) -> Symptoms:
    counted = any(one.answer.comparison.kind is Kind.SAME_COUNT for one in chosen)
    return Symptoms(
        ids=None if counted else Ids.EQUAL, divergence=Divergence.EVERYWHERE, sessions_alike=sessions_alike
    )


async def _compare(
    chosen: Sequence[Measured], models: Mapping[str, Reference], truth: Truth, rng: np.random.Generator
) -> Identity:
    reference, *others = await asyncio.gather(
        *(_left_by(model, chosen, truth) for model in (truth.reference, *models.values()))
    )
    return judge(reference, dict(zip(models, others, strict=True)), rng)


async def _left_by(model: Reference, chosen: Sequence[Measured], truth: Truth) -> np.ndarray:
    """Return what a model leaves unexplained of each answer, [prompts] in nats."""
    left = await asyncio.gather(*(_left_of(model, one, truth) for one in chosen))
    return np.array(left, dtype=np.float64)


async def _left_of(model: Reference, one: Measured, truth: Truth) -> float:
    observed = one.answer.aligned
    if not isinstance(observed, Aligned):
        raise TypeError(f"answer to {one.answer.prompt.id} has no usable logprobs")
    return unexplained(await model.next_token(truth.expected[one.answer.prompt.id]), observed)
