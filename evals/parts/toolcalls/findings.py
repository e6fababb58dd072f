"""What one night of tool calls states: a finding for ``toolcalls``, and one for ``output`` if due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.parts.toolcalls.blame import Blame, blame_for, speaker_of
from evals.parts.toolcalls.prompts import JudgedPrompt, Source
from evals.parts.toolcalls.tools_in_prompt import ToolsInPrompt
from evals.parts.toolcalls.wording import counts_of, listed, models_own, not_rendered
from ringtrue.records import Cause, Check, Finding, Party, Severity, State
from ringtrue.stats import wilson

TOLERATED = 0.02  # share of requests that a serviceable endpoint may answer with a fault
LEVEL = 0.99
LEAST = 8  # requests below which no night is OK
LEAST_FAULTY = 2  # one request alone may be a near-tie that fell the other way


@dataclass(frozen=True, slots=True)
class Context:
    """Beside the judged requests: how many were planned, and what is known of the endpoint.

    ``harness`` says why no raw text was put beside the answers, ``None`` where
    it was or was not needed. ``cap`` is in tokens. ``rates`` is the sentence on the night's metrics,
    ``numbers`` what is kept of them. ``stopped`` is why the asking ended early.
    """

    endpoint: str
    asked: int
    suite: int
    tools: ToolsInPrompt
    logprobs: State
    harness: str | None
    rates: str
    stopped: str | None
    cap: int
    numbers: Mapping[str, Any] = field(default_factory=dict)


def state_night(judged: Sequence[JudgedPrompt], context: Context) -> tuple[Finding, ...]:
    """Return the finding for ``toolcalls``, and one for ``output`` where answers are spoiled too often.

    The unit is the request: its two answers are not independent. WORSE where
    the lower 99 % limit of the share of requests with a fail fault that is not
    the model's own lies above `TOLERATED`, or where the server drops tools
    that the model's own template writes. UNKNOWN where fewer than `LEAST`
    requests, or than half of those planned, were answered.
    """
    scored = [one for one in judged if one.scored]
    findings = [_of_toolcalls(scored, judged, context)]
    if beyond_tolerance(_faulty(scored, Check.OUTPUT), len(scored)):
        findings.append(_worse(Check.OUTPUT, scored, context))
    return tuple(findings)


def beyond_tolerance(faulty: int, n: int) -> bool:
    """Tell whether so many faulty requests are more than a serviceable endpoint has."""
    interval = wilson(faulty, n, LEVEL)
    low = interval.low if interval is not None else None
    return faulty >= LEAST_FAULTY and low is not None and low > TOLERATED


def detectable_share(n: int) -> float | None:
    """Return the smallest share of faulty requests that ``n`` of them would have shown as WORSE."""
    return next((faulty / n for faulty in range(1, n + 1) if beyond_tolerance(faulty, n)), None)


def _of_toolcalls(
    scored: Sequence[JudgedPrompt], judged: Sequence[JudgedPrompt], context: Context
) -> Finding:
    faulty = _faulty(scored, Check.TOOLCALLS)
    if beyond_tolerance(faulty, len(scored)):
        return _worse(Check.TOOLCALLS, scored, context)
    named = [listed(scored, Check.TOOLCALLS)] if faulty else []
    if context.tools.dropped and not context.tools.own_template:
        return _finding(
            Check.TOOLCALLS,
            "toolcalls.tools_not_rendered",
            Blame(Party.PROVIDER, Cause.PROMPT),
            [not_rendered(context.tools), *named, *_also(scored, context)],
            scored,
            context,
        )
    broken = bool(judged) and all(one.broken for one in judged)
    cut = sum(len(one.cut) for one in judged)
    missing = _missing(scored, context, broken=broken)
    words = f"{len(scored) - faulty} of {len(scored)} requests were answered without a fault of the server"
    return _finding(
        Check.TOOLCALLS,
        "toolcalls.sound" if missing is None else "toolcalls.unmeasured",
        Blame(*((Party.CALLER, Cause.CALLER) if broken else ())),
        [*([missing] if missing else []), words, *named, *_cuts(cut, context), *_also(scored, context)],
        scored,
        context,
    )


def _worse(check: Check, scored: Sequence[JudgedPrompt], context: Context) -> Finding:
    code = speaker_of(scored, check)
    blame = blame_for(code, scored, context.tools, context.logprobs)
    words = [
        f"{_faulty(scored, check)} of {len(scored)} requests were answered with a fault, "
        f"at most {TOLERATED:.0%} may: {listed(scored, check, code)}"
    ]
    if blame.cause is Cause.PROMPT:
        words.append(not_rendered(context.tools))
    if check is Check.TOOLCALLS:
        words += _also(scored, context)
        code = f"{check}.{code}"
    return _finding(check, code, blame, words, scored, context)


def _finding(
    check: Check,
    code: str,
    blame: Blame,
    words: Sequence[str],
    scored: Sequence[JudgedPrompt],
    context: Context,
) -> Finding:
    n, faulty = len(scored), _faulty(scored, check)
    share = faulty / n if n else None
    quiet = code in ("toolcalls.sound", "toolcalls.unmeasured")
    return Finding(
        endpoint=context.endpoint,
        check=check,
        code=code,
        severity=Severity.INFO if quiet else Severity.FAIL,
        party=blame.party,
        cause=blame.cause,
        message="; ".join(words),
        alternatives=blame.alternatives,
        effect=None if share is None else max(share - TOLERATED, 0.0),
        unit="share",
        interval=wilson(faulty, n, LEVEL),
        n=n,
        detectable_effect=detectable_share(n),
        metric="faulty_requests",
        value=share,
        measured=code != "toolcalls.unmeasured",
        evidence={
            "codes": counts_of(scored),
            "requests": {"asked": context.asked, "scored": n, "suite": context.suite},
            "raw": {source.value: sum(one.source is source for one in scored) for source in Source},
            "tools_dropped": context.tools.dropped,
            "own_template_drops_tools": context.tools.own_template,
            "metrics": dict(context.numbers),
        },
    )


def _faulty(scored: Sequence[JudgedPrompt], check: Check) -> int:
    return sum(bool(one.failed(check)) for one in scored)


def _also(scored: Sequence[JudgedPrompt], context: Context) -> list[str]:
    own = "the model's own template writes no tools into the prompt" if context.tools.own_template else ""
    return [words for words in (context.rates, models_own(scored), own, context.harness) if words]


def _cuts(cut: int, context: Context) -> list[str]:
    return [f"{cut} answers were cut at {context.cap} tokens, raise parts.toolcall_tokens"] if cut else []


def _missing(scored: Sequence[JudgedPrompt], context: Context, *, broken: bool) -> str | None:
    needed = max(LEAST, (context.asked + 1) // 2)
    if len(scored) >= needed:
        return None
    if broken:
        return "the schemas of all requests that were answered are broken"
    why = ""
    if context.stopped is not None:
        why = f"; the asking was given up, {context.stopped}"
    elif context.asked < needed:
        why = f", and {context.asked} were asked: set parts.toolcalls to {LEAST} or more"
    return f"{len(scored)} requests were answered and {needed} are needed{why}"
