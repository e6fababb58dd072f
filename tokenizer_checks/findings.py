"""Statements about token IDs, with the harm that a difference does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ringtrue.causes import Ids, Symptoms, decide
from ringtrue.records import Cause, Check, Finding, Interval, Party, Severity
from tokenizer_checks.agreement import Agreement
from tokenizer_checks.comparison import Comparison


@dataclass(frozen=True, slots=True)
class Harm:
    """How far answers lie from the reference's on the *expected* IDs: mean KL in nats over n prompts.

    ``beyond`` is true when the lower limit is above the tolerance of
    docs/methods.md, "The rule of one night".
    """

    mean: float
    interval: Interval | None
    n: int
    beyond: bool


def judge(
    endpoint: str, agreement: Agreement, harm: Harm | None, *, greedy_departs: bool | None
) -> list[Finding]:
    """Return the findings for the checks ``tokens`` and ``context``.

    A cut beyond a length is a finding of ``context``, and ``tokens`` is then
    fine below that length; every other difference is one of ``tokens``.
    """
    if agreement.ids is None:
        return [_unseen(endpoint)]
    if agreement.ids is Ids.EQUAL:
        return [_equal(endpoint, agreement)]
    cause, alternatives = decide(Symptoms(ids=agreement.ids, greedy_departs=greedy_departs))
    if agreement.counted:
        # Counts can't tell a cut from a shorter rendering, nor one vocabulary from another.
        possible = (Cause.CONTEXT, Cause.PROMPT, Cause.IDENTITY)
        alternatives = tuple(c for c in possible if c is not cause)
    differs = _differs(endpoint, agreement, harm, cause, alternatives)
    if agreement.ids is Ids.CUT_BEYOND:
        return [differs, _equal(endpoint, agreement)]
    return [differs]


def _differs(
    endpoint: str, agreement: Agreement, harm: Harm | None, cause: Cause, alternatives: tuple[Cause, ...]
) -> Finding:
    cut = agreement.ids is Ids.CUT_BEYOND
    if cut:
        message = (
            f"from {agreement.onset:,} tokens on the prompt is cut: the server used at most "
            f"{agreement.kept:,} tokens and did not say so"
        )
    else:
        message = _described(agreement)
    return Finding(
        endpoint=endpoint,
        check=Check.CONTEXT if cut else Check.TOKENS,
        code="context.cut" if cut else f"tokens.{agreement.ids}",
        severity=Severity.FAIL if harm is not None and harm.beyond else Severity.WARN,
        party=Party.PROVIDER,
        cause=cause,
        message=message + _harm_words(harm),
        alternatives=alternatives,
        effect=harm.mean if harm else None,
        value=harm.mean if harm else None,
        metric="kl_on_expected_ids",
        unit="nats",
        interval=harm.interval if harm else None,
        n=harm.n if harm else agreement.seen,
        onset=agreement.onset,
        evidence=_evidence(agreement.example) if agreement.example else {},
    )


def _described(agreement: Agreement) -> str:
    share = f"{agreement.differing} of {agreement.seen} prompts"
    example = agreement.example
    if example is None or example.used is None:
        return f"other token IDs than the model's template gives in {share}"
    if agreement.counted:
        return (
            f"other token counts than the model's template gives in {share} "
            f"({_delta(example)} in the shortest)"
        )
    if agreement.ids is Ids.OTHER_VOCABULARY:
        return f"token IDs of another vocabulary or pre-tokenizer in {share}"
    return (
        f"other token IDs than the model's template gives in {share}: {_delta(example)}, "
        f"first difference at token {example.first} ({_place(example)})"
    )


def _delta(example: Comparison) -> str:
    by = (example.used or 0) - example.expected
    if by == 0:
        return "as many tokens"
    return f"{abs(by)} token{'s' if abs(by) > 1 else ''} {'more' if by > 0 else 'fewer'}"


def _place(example: Comparison) -> str:
    if example.first is not None and example.first <= 1:
        return "the start: BOS or system prompt"
    if example.first is not None and example.first >= (example.used or 0):
        return "the end: the generation prompt or a suffix is missing"
    return "inside the prompt"


def _harm_words(harm: Harm | None) -> str:
    if harm is None:
        return ""
    return f"; its answers lie {harm.mean:.3g} nats from the model's own"


def _equal(endpoint: str, agreement: Agreement) -> Finding:
    right = agreement.seen - agreement.differing
    prompts = f"{right:,} prompt{'s' * (right != 1)}"
    below = f" below {agreement.onset:,} tokens" if agreement.onset is not None else ""
    words = (
        f"token counts fit the model's template in {prompts}{below} (the server shows no IDs)"
        if agreement.counted
        else f"the token IDs are the model's own in {prompts}{below}"
    )
    return Finding(
        endpoint=endpoint,
        check=Check.TOKENS,
        code="tokens.equal",
        severity=Severity.INFO,
        party=Party.UNKNOWN,
        cause=Cause.UNKNOWN,
        message=words,
        metric="differing_prompts",
        value=0.0,
        unit="prompts",
        n=right,
        evidence={"counted": agreement.counted},
    )


def _unseen(endpoint: str) -> Finding:
    return Finding(
        endpoint=endpoint,
        check=Check.TOKENS,
        code="tokens.unseen",
        severity=Severity.INFO,
        party=Party.UNKNOWN,
        cause=Cause.UNKNOWN,
        message="the server shows neither token IDs nor prompt token counts, so the prompt can't be checked",
        measured=False,
    )


def _evidence(example: Comparison) -> Mapping[str, Any]:
    return {
        "first": example.first,
        "expected_tokens": example.expected,
        "used_tokens": example.used,
        "cut": list(example.cut) if example.cut else None,
        "expected_ids": list(example.expected_window),
        "used_ids": list(example.used_window),
        "window_sha256": hashlib.sha256(repr(example.expected_window).encode()).hexdigest()[:16],
    }
