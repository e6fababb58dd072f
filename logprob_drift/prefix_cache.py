"""Does a warm prefix cache change answers? (docs/methods.md, "Prefix cache")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logprob_drift.findings import Basis
from logprob_drift.left_out import left_out
from logprob_drift.night import FEW_NEED, Night, Values, gross_limit, one_bucket
from ringtrue.records import DRIFT, Cause, Check, Finding, Party, Severity, State

_SEVERITY = {State.WORSE: Severity.FAIL, State.CHANGED: Severity.WARN}


@dataclass(frozen=True, slots=True)
class CacheNight:
    """What the same prompts say cold and then warm, both by the rule of one night.

    ``warm_off`` and ``cold_off`` prompts lie beyond ``gross`` nats.
    """

    state: State
    cold: Night
    warm: Night
    cold_off: int
    warm_off: int
    gross: float


def judge_cache(cold: Values, warm: Values, floor: Values, rng: np.random.Generator) -> CacheNight:
    """Judge prompts [prompts] by their divergence cold and warm and by their floor, all in nats and paired.

    The state is that of the warm answers by the rule of one night, where no
    cold one is gross and the warm ones do not just share the cold ones' fault.
    Some warm answers gross and others not is UNKNOWN, as is a pair too few.
    With few prompts only gross faults can be seen.

    Raises:
        ValueError: when the shapes differ.
    """
    if not cold.shape == warm.shape == floor.shape:
        raise ValueError(f"{cold.shape} cold and {warm.shape} warm answers beside {floor.shape} floors")
    gross = gross_limit(floor)
    nights = [one_bucket(d, floor, gross, rng) for d in (cold, warm)]
    cold_off, warm_off = int((cold > gross).sum()), int((warm > gross).sum())
    if cold.size < FEW_NEED:
        state = State.UNKNOWN
    elif cold_off or nights[0].state in DRIFT:
        state = State.OK  # not the cache's fault: the context curve judges that one
    elif nights[1].state in DRIFT:
        state = nights[1].state
    else:
        state = State.UNKNOWN if warm_off else State.OK
    return CacheNight(state, nights[0], nights[1], cold_off, warm_off, gross)


def cache_finding(
    endpoint: str, night: CacheNight, *, shown_warm: int, key: str | None, basis: Basis
) -> Finding:
    """Return the finding of one night.

    Of the prompts, ``shown_warm`` are known to have come from the cache the
    second time. Where none is, the finding is no UNKNOWN: it says so, and the
    check rests on what else is known of it. ``key`` is the field that carried
    the cache key, ``None`` where the server takes none.
    """
    drifts = night.state in DRIFT
    known = night.state is not State.UNKNOWN
    return Finding(
        endpoint=endpoint,
        check=Check.CACHE,
        code="cache.changes" if drifts else "cache.alike" if known else "cache.unmeasured",
        severity=_SEVERITY.get(night.state, Severity.INFO),
        party=Party.PROVIDER if drifts else Party.UNKNOWN,
        cause=Cause.NUMERICS if drifts else Cause.UNKNOWN,
        message=_words(night, shown_warm) + left_out(basis),
        alternatives=_alternatives(shown_warm, basis) if drifts else (),
        effect=_beyond(night) if drifts else None,
        unit="nats",
        interval=night.warm.interval,
        n=night.warm.n,
        detectable_effect=night.gross if night.warm.n else None,
        metric="kl_warm",
        value=night.warm.mean_d,
        measured=known,
        evidence={
            "kl_cold": night.cold.mean_d,
            "floor": night.warm.mean_f,
            "warm": shown_warm,
            "cache_key": key,
        },
    )


def _words(night: CacheNight, shown_warm: int) -> str:
    count = night.warm.n
    if count < FEW_NEED:
        got = f"only {count} prompts" if count else "no prompt"
        return f"{got} could be compared both cold and warm: {FEW_NEED - count} more are needed"
    numbers = (
        f"KL {night.warm.mean_d:.3g} nats the second time, {night.cold.mean_d:.3g} the first, "
        f"against a floor of {night.warm.mean_f:.2g}"
    )
    unseen = "" if shown_warm else "; nothing shows that the second answers came from a cache"
    if night.state in DRIFT:
        return f"the prefix cache changes answers: {numbers}{unseen}"
    if night.state is State.UNKNOWN:
        return f"{night.warm_off} of {count} prompts turn grossly off the second time: {numbers}{unseen}"
    if night.cold_off or night.cold.state in DRIFT:
        return f"the first answers are off already, so the prefix cache is not judged: {numbers}"
    if not shown_warm:
        return f"asked twice, the same prompts are answered alike, cached or not: {numbers}{unseen}"
    return f"the prefix cache changes nothing beyond {night.gross:.2g} nats: {numbers}"


def _alternatives(shown_warm: int, basis: Basis) -> tuple[Cause, ...]:
    # Without a proof of warmth the second answer may come from another backend.
    mixture = () if shown_warm else (Cause.MIXTURE,)
    return (*((Cause.PROMPT,) if basis.counted else ()), *mixture)


def _beyond(night: CacheNight) -> float | None:
    warm, floor = night.warm.mean_d, night.warm.mean_f
    return warm - floor if warm is not None and floor is not None else None
