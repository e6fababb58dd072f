"""The statement about which model answers border inputs."""

from __future__ import annotations

from logprob_drift.findings import Basis
from logprob_drift.token_only.border_night import BorderNight
from ringtrue.records import Cause, Check, Finding, Party, Severity, State

_CODES = {State.CHANGED: "left_support", State.OK: "within_support", State.UNKNOWN: "unmeasured"}


def border_finding(endpoint: str, night: BorderNight, basis: Basis) -> Finding:
    """Return the finding for ``identity``: CHANGED, OK, or UNKNOWN with what is missing.

    The cause of a change is ``identity``; weights in a far lower precision
    and another way to choose tokens can do the same, and so can another prompt
    where the server did not show its IDs.
    """
    changed = night.state is State.CHANGED
    possible = (Cause.NUMERICS, Cause.SAMPLING, *((Cause.PROMPT,) if basis.counted else ()))
    return Finding(
        endpoint=endpoint,
        check=Check.IDENTITY,
        code=f"identity.{_CODES[night.state]}",
        severity=Severity.WARN if changed else Severity.INFO,
        party=Party.PROVIDER if changed else Party.UNKNOWN,
        cause=Cause.IDENTITY if changed else Cause.UNKNOWN,
        message=_words(night, basis),
        alternatives=possible if changed else (),
        effect=night.violating / night.n if night.n else None,
        unit="share",
        interval=night.interval,
        n=night.n,
        detectable_effect=night.detectable,
        metric="border_violations",
        value=night.violating / night.n if night.n else None,
        measured=night.state is not State.UNKNOWN,
        evidence={"e_value": night.e_value, "violating": night.violating},
    )


def _words(night: BorderNight, basis: Basis) -> str:
    seen = f"{night.violating} of {night.n} border inputs were answered outside what the reference supports"
    if night.detectable is None:
        words = (
            f"{seen}, and {night.needed} inputs are needed for an answer: {night.needed - night.n} more"
            if night.needed > night.n
            else f"{seen}, and no number of them could decide at this rate of honest answers outside"
        )
    elif night.state is State.CHANGED:
        words = f"{seen}: {night.e_value:.2g} times likelier of another model than of this one"
    elif night.state is State.OK:
        words = f"{seen}: {1 / night.e_value:.2g} times likelier of this model than of another"
    else:
        words = f"{seen}, too many for this model and too few for another: more nights are needed"
    if basis.withheld:
        words += f"; {basis.withheld} answers withheld, their token IDs differ"
    if lost := sum(basis.unusable.values()):
        words += f"; {lost} answers left out, whose first token can't be told"
    if basis.counted:
        words += "; the server does not show the prompts' token IDs"
    return words
