"""Statements about logprobs: the rule of one night, and the onset of a long-context fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from logprob_drift.context_curve import Bucket, Curve, missing
from logprob_drift.night import GROSS, RATIO, TOLERANCE, Night
from ringtrue.causes import Divergence, Ids, Symptoms, decide
from ringtrue.records import DRIFT, Cause, Check, Finding, Party, Severity, State

_SEVERITY = {State.WORSE: Severity.FAIL, State.CHANGED: Severity.WARN}


@dataclass(frozen=True, slots=True)
class Basis:
    """On which token IDs the logprobs were compared.

    ``withheld`` prompts were left out because their IDs differ. With
    ``own_ids`` the reference was asked on the server's IDs instead of the
    model's own, ``counted`` says that equality is known from counts only.
    ``unusable`` rows were left out, by the name of their defect. ``variant``
    names a precision of the model that explains what diverges.
    """

    withheld: int = 0
    own_ids: bool = False
    counted: bool = False
    unusable: Mapping[str, int] = field(default_factory=dict)
    variant: str | None = None


def judge(
    endpoint: str,
    curve: Curve,
    basis: Basis,
    *,
    sessions_alike: bool | None,
    other_model_fits: bool | None = None,
) -> list[Finding]:
    """Return one finding for ``logprobs`` and one for ``context``.

    ``other_model_fits`` says whether another registered model explains the
    answers, ``None`` where no registered one does.

    Invariant: a statement rests only on prompts whose token IDs were the same
    on both sides, and says which those are.
    """
    symptoms = Symptoms(
        ids=None if basis.counted else Ids.EQUAL,
        sessions_alike=sessions_alike,
        other_model_fits=other_model_fits,
    )
    return [_logprobs(endpoint, curve, basis, symptoms), _context(endpoint, curve, basis, symptoms)]


def _logprobs(endpoint: str, curve: Curve, basis: Basis, symptoms: Symptoms) -> Finding:
    night = curve.below
    alone = _bucket_alone(curve)
    if night.state is State.OK and alone is not None:
        night = alone.night
    cause, alternatives = (
        _blame(symptoms, Divergence.EVERYWHERE) if night.state in DRIFT else (Cause.UNKNOWN, ())
    )
    if night.state in DRIFT and not curve.everywhere:
        alternatives = (*alternatives, *(c for c in (Cause.CONTEXT,) if c not in alternatives))
    return _finding(
        endpoint,
        Check.LOGPROBS,
        night,
        message=_logprob_words(curve, night, basis),
        cause=cause,
        alternatives=alternatives,
    )


def _bucket_alone(curve: Curve) -> Bucket | None:
    """Return a bucket that is beyond the floor where the pool is not, and no onset explains it."""
    if curve.onset is not None:
        return None
    return next((b for b in curve.buckets if b.night.state in DRIFT), None)


def _context(endpoint: str, curve: Curve, basis: Basis, symptoms: Symptoms) -> Finding:
    beyond = curve.beyond
    if beyond is not None:
        cause, alternatives = _blame(symptoms, Divergence.BEYOND)
        return _finding(
            endpoint,
            Check.CONTEXT,
            beyond.night,
            message=(
                f"right below {beyond.length:,} tokens, wrong from there on: KL {beyond.night.mean_d:.3g} "
                f"nats at {beyond.length:,} against a floor of {curve.below.mean_f or 0:.2g}"
                f"{_over_nights(beyond)}"
            ),
            cause=cause,
            alternatives=alternatives,
            onset=beyond.length,
        )
    unsure = curve.open
    judged = [b for b in curve.buckets if b.night.state is not State.UNKNOWN]
    known = judged and not unsure and len(curve.buckets) > 1
    night = (
        max((b.night for b in curve.buckets), key=lambda n: n.detectable or 0.0) if known else _unknown(curve)
    )
    words = _no_onset(curve) if known else _open_words(curve, unsure, basis)
    return _finding(endpoint, Check.CONTEXT, night, message=words, cause=Cause.UNKNOWN, measured=bool(known))


def _unknown(curve: Curve) -> Night:
    open_buckets = curve.open or curve.buckets
    return open_buckets[0].night if open_buckets else curve.below


def _no_onset(curve: Curve) -> str:
    if curve.everywhere:
        return "no fault begins at a length: the divergence is there at every one (see logprobs)"
    words = f"no fault begins at a length up to {curve.buckets[-1].length:,} tokens"
    few = [b for b in curve.buckets if b.night.state is State.UNKNOWN]
    if few:
        lengths = ", ".join(f"{b.length:,}" for b in few)
        words += f" (at {lengths} only one beyond {few[0].night.detectable:.2g} nats could have shown)"
    return words


def _open_words(curve: Curve, unsure: Sequence[Bucket], basis: Basis) -> str:
    if basis.own_ids:
        return "not compared: the token IDs differ (see tokens)"
    if len(curve.buckets) < 2:
        return "one length alone shows no onset: probe at least two"
    if any(b.gross for b in unsure):
        bucket = next(b for b in unsure if b.gross)
        some = f"{bucket.gross} of {bucket.night.n} prompts at {bucket.length:,} tokens are grossly off"
        others = " and the others not" if bucket.gross < bucket.night.n else ""
        return f"{some}{others}{_over_nights(bucket)}: {missing(bucket.night)} more are needed there"
    needed = unsure or curve.buckets
    need = ", ".join(f"{missing(b.night)} more at {b.length:,}" for b in needed)
    turning = "; each night brings other prompts there" if any(b.turning for b in needed) else ""
    return f"too few prompts to tell: {need} tokens are needed{turning}"


def _over_nights(bucket: Bucket) -> str:
    return f", over the last {bucket.nights} nights" if bucket.nights > 1 else ""


def _logprob_words(curve: Curve, night: Night, basis: Basis) -> str:
    if night.state is State.UNKNOWN:
        got = "no prompt" if night.n == 0 else f"only {night.n} prompts"
        words = f"{got} could be compared and {night.needed} are needed: {missing(night)} more"
    else:
        low = night.ratio.low if night.ratio is not None else None
        times = f" ({night.mean_d / night.mean_f:.3g}x)" if night.mean_f and night.mean_d is not None else ""
        words = f"KL {night.mean_d:.3g} nats against a floor of {night.mean_f:.2g}{times}"
        if night.state is State.WORSE:
            words += f", beyond the tolerance of {TOLERANCE:g}"
        elif night.state is State.CHANGED:
            words += f", beyond {RATIO:g}x the floor" + (f" with 99 % confidence ({low:.3g}x)" if low else "")
    if basis.variant is not None and night.state in DRIFT:
        words += f"; explained by {basis.variant}"
    if curve.onset is not None:
        words += f"; prompts below {curve.onset:,} tokens"
    if basis.own_ids:
        words += f"; compared on the server's own token IDs, {basis.withheld} prompts withheld"
    elif basis.withheld:
        words += f"; {basis.withheld} prompts withheld, their token IDs differ"
    if basis.unusable:
        kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in basis.unusable.items())
        words += f"; logprob rows left out: {kinds}"
    if basis.counted:
        words += "; token IDs taken as equal because their counts are"
    return words


def _blame(symptoms: Symptoms, divergence: Divergence) -> tuple[Cause, tuple[Cause, ...]]:
    ids = symptoms.ids or Ids.EQUAL
    cause, alternatives = decide(replace(symptoms, ids=ids, divergence=divergence))
    if symptoms.ids is None:
        alternatives = (Cause.PROMPT, *alternatives)
    return cause, alternatives


def _finding(
    endpoint: str,
    check: Check,
    night: Night,
    *,
    message: str,
    cause: Cause,
    alternatives: tuple[Cause, ...] = (),
    onset: int | None = None,
    measured: bool | None = None,
) -> Finding:
    """Put ``night`` into a finding; ``measured`` is given only where no fault was found."""
    known = night.state is not State.UNKNOWN if measured is None else measured
    state = night.state if measured is None else State.OK
    word = "within_floor" if state is State.OK else "beyond_floor"
    beyond = night.mean_d - night.mean_f if night.mean_d is not None and night.mean_f is not None else None
    return Finding(
        endpoint=endpoint,
        check=check,
        code=f"{check}.{word if known else 'unmeasured'}",
        severity=_SEVERITY.get(state, Severity.INFO),
        party=Party.PROVIDER if state in DRIFT else Party.UNKNOWN,
        cause=cause,
        message=message,
        alternatives=alternatives,
        effect=beyond,
        unit="nats",
        interval=night.interval,
        n=night.n,
        detectable_effect=night.detectable,
        onset=onset,
        metric="kl",
        value=night.mean_d,
        measured=known,
        evidence={"floor": night.mean_f, "gross_factor": GROSS},
    )
