"""The statement about greedy continuations of an endpoint without logprobs."""

from __future__ import annotations

from dataclasses import dataclass

from logprob_drift.findings import Basis
from logprob_drift.night import RATIO
from logprob_drift.token_only.greedy_margins import MarginNight
from ringtrue.records import Cause, Check, Finding, Party, Severity, State


@dataclass(frozen=True, slots=True)
class GreedyAnswers:
    """What was held against the reference.

    Of ``prompts`` asked, ``tokens`` tokens could be compared. ``match`` and
    ``replay_match`` are the shares of them that are the reference's own choice,
    of the endpoint's and of an honest server's; ``None`` for no tokens.
    """

    prompts: int
    tokens: int
    match: float | None
    replay_match: float | None


def greedy_finding(endpoint: str, night: MarginNight, answers: GreedyAnswers, basis: Basis) -> Finding:
    """Return the finding for ``sampling``: CHANGED, OK, or UNKNOWN with the number of prompts missing.

    The cause of a change is ``numerics``; other weights and another way to
    choose tokens would look alike, and so would another prompt where the
    server did not show its IDs.
    """
    changed = night.state is State.CHANGED
    known = night.state is not State.UNKNOWN
    possible = (Cause.IDENTITY, Cause.SAMPLING)
    return Finding(
        endpoint=endpoint,
        check=Check.SAMPLING,
        code=f"sampling.{_CODES[night.state]}",
        severity=Severity.WARN if changed else Severity.INFO,
        party=Party.PROVIDER if changed else Party.UNKNOWN,
        cause=Cause.NUMERICS if changed else Cause.UNKNOWN,
        message=_words(night, answers, basis),
        alternatives=((Cause.PROMPT, *possible) if basis.counted else possible) if changed else (),
        effect=night.mean - night.replay if night.mean is not None and night.replay is not None else None,
        unit="nats",
        interval=night.margin,
        n=night.n,
        detectable_effect=night.detectable,
        metric="greedy_margin",
        value=night.mean,
        measured=known,
        evidence={
            "replay_margin": night.replay,
            "tokens": answers.tokens,
            "match": answers.match,
            "replay_match": answers.replay_match,
        },
    )


_CODES = {
    State.CHANGED: "greedy_beyond_replay",
    State.OK: "greedy_within_replay",
    State.UNKNOWN: "unmeasured",
}


def _words(night: MarginNight, answers: GreedyAnswers, basis: Basis) -> str:
    if night.state is State.UNKNOWN or answers.match is None or answers.replay_match is None:
        words = (
            f"the greedy answers to {night.n} of {answers.prompts} prompts could be held against the "
            f"reference and {night.needed} are needed: {night.needed - night.n} more"
        )
    else:
        words = (
            f"{answers.match:.1%} of {answers.tokens:,} greedy tokens are the reference's own choice, "
            f"{answers.replay_match:.1%} of an honest server's; mean margin {night.mean:.2g} nats against "
            f"{night.replay:.2g}"
        )
        if night.state is State.CHANGED and night.interval is not None:
            confidence = (1 + night.interval.level) / 2
            words += f", beyond {RATIO:g}x of it with {confidence:.1%} confidence"
        elif night.state is State.CHANGED:
            words += f", beyond {RATIO:g}x of it"
    if basis.withheld:
        words += f"; {basis.withheld} prompts withheld, their token IDs differ"
    if lost := sum(basis.unusable.values()):
        words += f"; {lost} answers left out, whose token IDs can't be told"
    if basis.counted:
        words += "; the server does not show the prompts' token IDs"
    return words
