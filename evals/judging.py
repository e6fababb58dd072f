"""From what was asked and compared to findings: the judges called in their order, upstream first."""

from __future__ import annotations

from evals import availability
from evals.asking import Asked
from evals.comparisons import Comparisons
from evals.truth import AGREEMENT
from logprob_drift import findings as logprob_findings
from logprob_drift.context_curve import Curve
from logprob_drift.findings import Basis
from logprob_drift.sessions import sessions_alike
from ringtrue.records import Check, Finding, Party
from tokenizer_checks import findings as token_findings

EXAMINED = (Check.LOGPROBS, Check.CONTEXT, Check.TOKENS, Check.WIRE)


def unmeasured_everywhere(endpoint: str, reason: str, party: Party) -> tuple[Finding, ...]:
    """Return an UNKNOWN for every check, with one reason."""
    return tuple(availability.unmeasured(endpoint, check, reason, party) for check in EXAMINED)


def verdict_findings(
    endpoint: str,
    asked: Asked,
    comparisons: Comparisons,
    curve: Curve | None,
    *,
    self_difference: float | None,
) -> tuple[Finding, ...]:
    """Return all findings of one examination, most upstream first.

    ``self_difference`` is the largest difference of the reference from itself
    (nats), ``None`` when it was not asked: beyond `AGREEMENT` no logprob of the
    endpoint is judged.
    """
    wire = availability.judge(endpoint, asked.exchanges)
    if not any(answer.exchange.error is None for answer in asked.answers):
        blocked = asked.stopped or next(e.error for e in asked.exchanges if e.error is not None)
        return tuple(
            wire if check is Check.WIRE else availability.unmeasured_because(endpoint, check, blocked)
            for check in EXAMINED
        )
    tokens = token_findings.judge(
        endpoint, comparisons.agreement, comparisons.harm, greedy_departs=comparisons.greedy_departs
    )
    return (wire, *tokens, *_logprobs(endpoint, asked, comparisons, curve, self_difference))


def _logprobs(
    endpoint: str,
    asked: Asked,
    comparisons: Comparisons,
    curve: Curve | None,
    self_difference: float | None,
) -> list[Finding]:
    obstacle = _obstacle(asked, comparisons, curve, self_difference)
    if obstacle is not None or curve is None:
        reason, party = obstacle or ("nothing could be compared", Party.UNKNOWN)
        both = (Check.LOGPROBS, Check.CONTEXT)
        return [availability.unmeasured(endpoint, check, reason, party) for check in both]
    basis = Basis(
        withheld=comparisons.withheld,
        own_ids=comparisons.own_ids,
        counted=comparisons.agreement.counted,
        unusable={defect.value: count for defect, count in comparisons.defects.items()},
    )
    alike = sessions_alike([one.row for one in comparisons.measured], curve.gross)
    return logprob_findings.judge(endpoint, curve, basis, sessions_alike=alike)


def _obstacle(
    asked: Asked, comparisons: Comparisons, curve: Curve | None, self_difference: float | None
) -> tuple[str, Party] | None:
    """Return why logprobs can't be judged, and who can mend that."""
    if asked.trust is not None and asked.trust.trusted is False:
        return f"its logprobs fail the self-test: {'; '.join(asked.trust.reasons)}", Party.PROVIDER
    if self_difference is not None and self_difference > AGREEMENT:
        return (
            f"the reference differs from itself by {self_difference:.2g} nats, beyond {AGREEMENT:g}: "
            "mend the reference before judging endpoints by it",
            Party.CALLER,
        )
    return None if curve is not None else (_why_nothing(comparisons), Party.PROVIDER)


def _why_nothing(comparisons: Comparisons) -> str:
    """Return why not one answer could be compared."""
    if comparisons.defects:
        kinds = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in comparisons.defects.items())
        return f"no logprob row is usable: {kinds}"
    if comparisons.silent:
        return "the server sends no logprobs"
    if comparisons.agreement.ids is None:
        return "nothing shows which token IDs the server used, so its logprobs can't be compared"
    return "withheld: the token IDs differ (see tokens)"
