"""Statements about which model an endpoint serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from logprob_drift.context_curve import Curve
from logprob_drift.identity import Candidate, Fit, Identity
from ringtrue.causes import Ids, Symptoms, decide
from ringtrue.records import DRIFT, Cause, Check, Finding, Party, Severity, State


@dataclass(frozen=True, slots=True)
class Identified:
    """The finding for ``identity``, and what other judges need of it.

    ``other_model_fits`` is for `Symptoms`: true when another model explains
    the answers, false when the reference or a variant of it does, ``None``
    when no registered one does: what is not registered stays possible.
    ``variant`` names that variant, such as a precision, and ``identity`` holds
    the numbers where models were asked.
    """

    finding: Finding
    other_model_fits: bool | None = None
    variant: str | None = None
    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Which endpoint was held against which models.

    ``model`` is the reference's name, ``variants`` are the registered models
    with its checkpoint, such as other precisions of it. ``left_out`` says of
    registered models that could not be compared why not. ``state`` is that of
    the divergence, and ``symptoms`` what else was seen.
    """

    endpoint: str
    model: str
    state: State
    symptoms: Symptoms
    variants: frozenset[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)


def state_everywhere(curve: Curve) -> State:
    """Return how grave the divergence is that begins at no length, OK when there is none.

    A single bucket beyond its floor counts, as it does for ``logprobs``.
    """
    if curve.below.state in DRIFT or curve.onset is not None:
        return curve.below.state
    drifting = [b.night.state for b in curve.buckets if b.night.state in DRIFT]
    return State.WORSE if State.WORSE in drifting else next(iter(drifting), curve.below.state)


def within_floor(endpoint: str, curve: Curve, model: str) -> Identified:
    """Return that the endpoint serves ``model``: nothing diverges, or nothing below the onset."""
    night = curve.below
    where = f" below {curve.onset:,} tokens" if curve.onset is not None else ""
    finding = Finding(
        endpoint=endpoint,
        check=Check.IDENTITY,
        code="identity.reference",
        severity=Severity.INFO,
        party=Party.UNKNOWN,
        cause=Cause.UNKNOWN,
        message=f"its distribution{where} is that of {model}, within the noise floor",
        unit="nats",
        interval=night.interval,
        n=night.n,
        detectable_effect=night.detectable,
        metric="kl",
        value=night.mean_d,
    )
    return Identified(finding, other_model_fits=False)


def conclude(case: Case, found: Identity) -> Identified:
    """Return what the numbers of all registered models say.

    Another model that explains the answers is as grave as the divergence is. A variant of the
    reference that explains them makes identity OK: the fault is one of
    ``numerics``. None of them, or both kinds equally well: UNKNOWN.
    """
    best = found.best
    if best is None or found.fit is not Fit.EXPLAINS:
        return _unsure(case, found, _open_words(case, found))
    names = (best.name, *found.level_with_best)
    same = [name in case.variants for name in names]
    if all(same):
        words = f"it is {case.model} itself, computed as {_either(names)}: {_numbers(found, best)}"
        finding = _finding(case, found, "variant", words)
        return Identified(finding, other_model_fits=False, variant=best.name, identity=found)
    if any(same):
        words = (
            f"{' and '.join(names)} explain the answers equally well on {best.n} prompts, "
            f"so it may be {case.model} itself or not"
        )
        return _unsure(case, found, words)
    words = f"it answers as {_either(names)} and not as {case.model}: {_numbers(found, best)}"
    cause, alternatives = _blame(case.symptoms)
    finding = replace(
        _finding(case, found, "other", words),
        severity=Severity.FAIL if case.state is State.WORSE else Severity.WARN,
        party=Party.PROVIDER,
        cause=cause,
        alternatives=alternatives,
    )
    return Identified(finding, other_model_fits=True, identity=found)


def _unsure(case: Case, found: Identity, words: str) -> Identified:
    finding = _finding(case, found, "open", f"{words}; register what else it may be in reference.others")
    return Identified(replace(finding, measured=False), identity=found)


def _open_words(case: Case, found: Identity) -> str:
    best = found.best
    if best is None:
        words = f"it diverges from {case.model} and no registered model can be compared"
    elif found.fit is Fit.CLOSER:
        words = f"it is closer to {best.name} than to {case.model}, but not it: {_numbers(found, best)}"
    else:
        others = len(found.candidates) - 1
        more = f" (nor do {others} other registered models)" if others else ""
        words = f"{best.name} explains the answers no better than {case.model}{more}: {_numbers(found, best)}"
    return words + "".join(f"; {name} can't be compared: {why}" for name, why in case.left_out.items())


def _numbers(found: Identity, best: Candidate) -> str:
    low = best.interval.low if best.interval is not None else None
    limit = f", at least {low:.3g} with 99 % confidence" if low is not None and low > 0 else ""
    return (
        f"KL {best.remaining:.3g} nats stays unexplained against {found.divergence:.3g}, "
        f"a gain of {best.gain:.3g}{limit} ({best.n} prompts)"
    )


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} (or {', '.join(names[1:])})"


def _blame(symptoms: Symptoms) -> tuple[Cause, tuple[Cause, ...]]:
    cause, alternatives = decide(replace(symptoms, ids=symptoms.ids or Ids.EQUAL, other_model_fits=True))
    # Equal counts of IDs are no proof of equal IDs.
    return cause, (Cause.PROMPT, *alternatives) if symptoms.ids is None else alternatives


def _finding(case: Case, found: Identity, code: str, words: str) -> Finding:
    best = found.best
    gain = best.gain if best is not None else None
    return Finding(
        endpoint=case.endpoint,
        check=Check.IDENTITY,
        code=f"identity.{code}",
        severity=Severity.INFO,
        party=Party.UNKNOWN,
        cause=Cause.UNKNOWN,
        message=words,
        effect=gain,
        unit="nats",
        interval=best.interval if best is not None else None,
        n=found.n,
        detectable_effect=found.detectable,
        metric="gain",
        value=gain,
        evidence=_evidence(case, found),
    )


def _evidence(case: Case, found: Identity) -> dict[str, Any]:
    models = {
        one.name: {
            "fit": one.fit.value,
            "gain": one.gain,
            "low": one.interval.low if one.interval is not None else None,
            "remaining": one.remaining,
        }
        for one in found.candidates
    }
    return {"divergence": found.divergence, "models": models, "left_out": dict(case.left_out)}
