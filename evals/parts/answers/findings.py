"""What one night of answers states, and what becomes of it once earlier nights are there.

A night alone can't tell whether answers are of the right length: there is no
reference that has answered, so this is UNKNOWN until the endpoint has a past
of its own, and then the series of nights judges it. What no serviceable model
does is WORSE on the first night.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from logprob_drift.token_only.answers import LEAST_SHARE, AnswerNight, Broken, Fault
from ringtrue.causes import Divergence, Ids, Symptoms, decide
from ringtrue.records import DRIFT, Cause, Check, Finding, Party, Severity, State

NO_BASELINE = "output.no_baseline"
"""The code of a night that is comparable with others, and has no others yet."""

BASELINE = 14  # nights before the one that is judged
_BEFORE = "; no baseline yet: "

_DIVERGENCE: Mapping[State, Divergence | None] = MappingProxyType(
    {
        State.OK: Divergence.NONE,
        State.CHANGED: Divergence.EVERYWHERE,
        State.WORSE: Divergence.EVERYWHERE,
        State.UNKNOWN: None,
    }
)
_WORDS: Mapping[Fault, str] = MappingProxyType(
    {
        Fault.FLOODED: "end in one sign for ever",
        Fault.FOREIGN: "hold letters of another script",
        Fault.EMPTY: "are empty",
    }
)


@dataclass(frozen=True, slots=True)
class Context:
    """Beside the night's numbers: how many questions were planned and left out, and at which cap.

    ``withheld`` answers were to prompts whose token IDs differ; ``counted``
    says that those of others were taken as equal though the server did not
    show them. ``logprobs`` is what the context curve says of the endpoint,
    ``stopped`` why the asking ended early.
    """

    endpoint: str
    asked: int
    withheld: int
    counted: bool
    cap: int
    logprobs: State
    stopped: str | None


def state_night(night: AnswerNight, context: Context) -> Finding:
    """Return the finding for ``output`` of one night.

    WORSE where a share is beyond its limit; else UNKNOWN, with the code
    `NO_BASELINE` where the night can be held against others (`with_baseline`),
    and with what is missing where it can't.
    """
    if night.broken:
        return _worse(night, night.broken[0], context)
    words = _words(night, context)
    comparable = night.comparable
    missing = _until(BASELINE) if comparable else _incomparable(night, context)
    return Finding(
        endpoint=context.endpoint,
        check=Check.OUTPUT,
        code=NO_BASELINE if comparable else "output.unmeasured",
        severity=Severity.INFO,
        party=Party.UNKNOWN,
        cause=Cause.UNKNOWN,
        message=words + missing,
        unit="log tokens",
        interval=night.interval,
        n=night.lengths,
        metric="answer_log_length",
        value=night.log_length,
        measured=False,
        evidence=_evidence(night, context),
    )


def with_baseline(
    finding: Finding, nights: int, detectable: float | None, *, needed: int = BASELINE
) -> Finding:
    """Return ``finding`` as it is with ``nights`` comparable nights before it.

    ``detectable`` is the lasting shift of the log length that the series would
    show by tonight, ``None`` while it would show none. With ``needed`` nights
    and such a shift, a night that could not be judged alone is OK: what the
    series has against it is a finding of its own. A finding that is UNKNOWN
    for another reason, or WORSE, is returned unchanged.
    """
    if finding.code != NO_BASELINE:
        return finding
    words = finding.message.partition(_BEFORE)[0]
    evidence = {**finding.evidence, "nights": nights}
    if nights < needed:
        return replace(finding, message=words + _until(needed - nights), evidence=evidence)
    if detectable is None:
        told = f"{_BEFORE}{nights} nights before, in which no change could show yet"
        return replace(finding, message=words + told, evidence=evidence)
    return replace(
        finding,
        code="output.as_before",
        message=(
            f"{words}; held against {nights} nights before, where lasting {np.expm1(detectable):.0%} "
            "more tokens would show"
        ),
        detectable_effect=detectable,
        measured=True,
        evidence=evidence,
    )


def _worse(night: AnswerNight, broken: Broken, context: Context) -> Finding:
    cause, alternatives = _blame(night, broken.fault, context)
    words = (
        f"{broken.count.events} of {broken.count.n} answers {_WORDS[broken.fault]}, "
        f"at most {broken.limit:.0%} may"
    )
    if broken.fault is Fault.EMPTY and night.lost:
        words += f"; for {night.lost} of them the server made tokens that are not in the text"
    also = [f"{other.count.events} {_WORDS[other.fault]}" for other in night.broken if other is not broken]
    return Finding(
        endpoint=context.endpoint,
        check=Check.OUTPUT,
        code=f"output.{broken.fault}",
        severity=Severity.FAIL,
        party=Party.PROVIDER,
        cause=cause,
        message="; ".join([words, *also]),
        alternatives=alternatives,
        effect=broken.rate - broken.limit,
        unit="share",
        interval=broken.interval,
        n=broken.count.n,
        detectable_effect=broken.detectable,
        metric=f"{broken.fault}_answers",
        value=broken.rate,
        evidence=_evidence(night, context),
    )


def _blame(night: AnswerNight, fault: Fault, context: Context) -> tuple[Cause, tuple[Cause, ...]]:
    """Blame by the table of causes, but for signs and letters that only broken arithmetic makes.

    The curve asks for one token after a prompt. A fault of decoding, or of
    some replicas only, leaves it clean, so that clean logprobs don't excuse
    the arithmetic there.
    """
    cause: Cause
    others: tuple[Cause, ...]
    if fault is not Fault.EMPTY and context.logprobs not in DRIFT:
        cause, others = Cause.NUMERICS, (Cause.MIXTURE, Cause.SAMPLING, Cause.IDENTITY)
    else:
        lost = fault is Fault.EMPTY and 2 * night.lost > night.empty.events
        cause, others = decide(
            Symptoms(
                ids=None if context.counted else Ids.EQUAL,
                divergence=_DIVERGENCE[context.logprobs],
                samples_differ=None if lost else True,
                parsed_wrong=True if lost else None,
                slow=False,
                callers_own=False,
            )
        )
    if context.counted and Cause.PROMPT not in (cause, *others):
        others = (Cause.PROMPT, *others)
    return cause, others


def _words(night: AnswerNight, context: Context) -> str:
    words = f"{night.n} of {context.asked} questions were answered"
    if night.log_length is not None:
        words += f", with {np.exp(night.log_length):.0f} tokens in the geometric mean"
    seen = {
        f"cut at {context.cap}": night.capped.events,
        "looping": night.looping.events,
        "empty": night.empty.events,
        "of one sign for ever": night.flooded.events,
        "in another script": night.foreign.events,
    }
    said = ", ".join(f"{count} {what}" for what, count in seen.items() if count)
    words += f" ({said})" if said else ""
    if context.withheld:
        words += f"; {context.withheld} withheld, their token IDs differ"
    if context.counted:
        words += "; token IDs taken as equal, the server does not show them"
    if 2 * night.capped.events > night.n:
        words += "; most are cut, so that longer ones would not show: raise the cap"
    return words


def _incomparable(night: AnswerNight, context: Context) -> str:
    known = f"; {night.lengths} lengths are known and {night.needed} are needed ({LEAST_SHARE:.0%})"
    if context.stopped is not None:
        return f"{known}: the asking was given up, {context.stopped}"
    if 2 * night.silent > context.asked:
        return (
            f"{known}: {night.silent} answers were cut at {context.cap} tokens before any text, raise the cap"
        )
    uncounted = night.n - night.lengths - night.silent - night.empty.events
    if uncounted:
        return f"{known}: for {uncounted} answers the server stated no count (usage.completion_tokens)"
    return f"{known}: {night.needed - night.lengths} more"


def _until(missing: int) -> str:
    nights = "night" if missing == 1 else "nights"
    return f"{_BEFORE}{missing} more {nights}, until then no change could show"


def _evidence(night: AnswerNight, context: Context) -> dict[str, Any]:
    counts = {
        "capped": night.capped,
        "empty": night.empty,
        "looping": night.looping,
        "flooded": night.flooded,
        "foreign": night.foreign,
    }
    shares = {name: [count.events, count.n] for name, count in counts.items()}
    return {
        **shares,
        "silent": night.silent,
        "log_length": night.log_length,
        "reasoning_share": night.reasoning_share,
        "needed": night.needed,
        "withheld": context.withheld,
        "counted": context.counted,
        "cap": context.cap,
        "nights": 0,
    }
