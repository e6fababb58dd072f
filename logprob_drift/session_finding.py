"""The statement about a night's sessions: is a share of them served by something else?"""

from __future__ import annotations

from collections.abc import Sequence

from logprob_drift.alarms.mixture import SessionNight, sessions_needed
from logprob_drift.alarms.session_scores import Fingerprint
from logprob_drift.findings import Basis
from logprob_drift.left_out import left_out
from ringtrue.records import Cause, Check, Finding, Party, Severity, State

_NAMED = 16  # bad sessions whose keys are kept
_RARE = 0.008


def session_finding(
    endpoint: str,
    night: SessionNight,
    honest: Fingerprint | None,
    *,
    asked: int,
    share: float,
    bad: Sequence[str],
    basis: Basis,
) -> Finding:
    """Return the finding of one night.

    ``asked`` sessions were asked, ``share`` is the part that an OK excludes,
    ``bad`` are the keys of the bad ones, by which a provider finds them in
    its log. CHANGED blames a ``mixture``; where token IDs are known by their
    counts only, ``prompt`` stays possible.
    """
    changed = night.state is State.CHANGED
    known = night.state is not State.UNKNOWN
    return Finding(
        endpoint=endpoint,
        check=Check.SESSIONS,
        code="sessions.mixture" if changed else "sessions.alike" if known else "sessions.unmeasured",
        severity=Severity.WARN if changed else Severity.INFO,
        party=Party.PROVIDER if changed else Party.UNKNOWN,
        cause=Cause.MIXTURE if changed else Cause.UNKNOWN,
        message=_words(night, honest, asked, share) + left_out(basis),
        alternatives=(Cause.PROMPT,) if changed and basis.counted else (),
        effect=night.share if changed else None,
        unit="share",
        interval=night.interval,
        n=night.n,
        detectable_effect=night.detectable,
        metric="bad_sessions",
        value=night.share,
        measured=known,
        evidence={
            "bad": night.bad,
            "p_value": night.p_value,
            "times_the_usual": honest.factor if honest is not None else None,
            "everywhere": night.everywhere,
            "sessions": list(bad[:_NAMED]),
        },
    )


def _words(night: SessionNight, honest: Fingerprint | None, asked: int, share: float) -> str:
    sizes = (
        f"{sessions_needed(share):,} sessions show a share of {100 * share:g} %, "
        f"{sessions_needed(_RARE):,} one of {100 * _RARE:g} %"
    )
    if honest is None:
        return "no honest sessions to compare with: the reference must compute at least 100 of them"
    if night.state is State.CHANGED:
        return f"{_counted(night)} diverge from the model as no honest session does, and the others do not"
    if night.n == 0:
        return f"none of {asked} sessions could be compared"
    stand = f"{night.bad or 'none'} of {night.n} sessions stand{'' if night.bad > 1 else 's'}"
    if night.state is State.UNKNOWN:
        seen = "no share" if night.detectable is None else f"only one of {100 * night.detectable:.2g} %"
        return f"{stand} out, and so few could have shown {seen}: {sizes}"
    if night.everywhere:
        return f"all {night.n} sessions diverge alike: no mixture, the fault is everywhere"
    return f"{stand} out from the others by a factor of {honest.factor:.2g} or more: {sizes}"


def _counted(night: SessionNight) -> str:
    interval = night.interval
    if night.share is None or interval is None:
        return f"{night.bad} of {night.n} sessions"
    low, high = interval.low or 0.0, 1.0 if interval.high is None else interval.high
    return (
        f"{night.bad} of {night.n} sessions ({100 * night.share:.2g} %, {100 * interval.level:g} % interval "
        f"{100 * low:.2g} to {100 * high:.2g} %)"
    )
