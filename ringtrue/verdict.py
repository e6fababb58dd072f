"""From findings to verdicts: one word per endpoint and check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from ringtrue.records import Check, Finding, Severity, State, Verdict

Previous = Mapping[tuple[str, Check], Verdict]
"""The verdicts in force before this run, by endpoint and check."""

_STATES = {Severity.FAIL: State.WORSE, Severity.WARN: State.CHANGED, Severity.INFO: State.OK}
_LOUDNESS = (State.OK, State.UNKNOWN, State.CHANGED, State.WORSE)


def state_of(finding: Finding) -> State:
    """Return the state one finding asks for: unmeasured is UNKNOWN, whatever its severity."""
    return _STATES[finding.severity] if finding.measured else State.UNKNOWN


def conclude(
    endpoint: str,
    model: str,
    findings: Sequence[Finding],
    *,
    previous: Previous,
    run: str,
    at: datetime,
) -> tuple[Verdict, ...]:
    """Return one verdict per check that has findings, in the order of `Check`.

    The loudest finding of a check speaks for it (WORSE, CHANGED, UNKNOWN, OK);
    among equals the first does, so that judges put what is most upstream
    first. A check without findings was not examined and gets no verdict.
    ``since`` is what the finding says; without that it is carried over from
    ``previous`` while state and cause stay the same, and is ``at`` otherwise.
    """
    verdicts = []
    for check in Check:
        mine = [finding for finding in findings if finding.check is check]
        if mine:
            speaker = max(mine, key=lambda finding: _LOUDNESS.index(state_of(finding)))
            verdicts.append(_verdict(endpoint, model, speaker, previous.get((endpoint, check)), run, at))
    return tuple(verdicts)


def _verdict(
    endpoint: str, model: str, finding: Finding, before: Verdict | None, run: str, at: datetime
) -> Verdict:
    state = state_of(finding)
    # A fault has a cause, and a check that could not be made may have one (the caller's own
    # request); for one that is fine there is nothing to blame.
    cause = None if state is State.OK else finding.cause
    unbroken = before is not None and before.verdict is state and before.cause is cause
    return Verdict(
        endpoint=endpoint,
        model=model,
        check=finding.check,
        verdict=state,
        reason=finding.message,
        run=run,
        cause=cause,
        alternatives=() if state is State.OK else finding.alternatives,
        since=finding.since or (before.since if before is not None and unbroken else at),
        metric=finding.metric,
        value=finding.value,
        unit=finding.unit,
        interval=finding.interval,
        n=finding.n,
        detectable_effect=finding.detectable_effect,
        onset=finding.onset,
    )


def loudest(verdicts: Iterable[Verdict]) -> State | None:
    """Return the loudest state, or ``None`` for no verdict at all."""
    return loudest_of(v.verdict for v in verdicts)


def loudest_of(states: Iterable[State]) -> State | None:
    """Return the loudest of ``states``, or ``None`` for none at all."""
    return max(states, key=_LOUDNESS.index, default=None)
