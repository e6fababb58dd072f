"""From what was asked and compared to findings: the judges called in their order, upstream first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evals import availability
from evals.asking import Asked
from evals.comparisons import Comparisons
from evals.identity import identity
from evals.questions import Questions
from evals.truth import AGREEMENT
from logprob_drift import findings as logprob_findings
from logprob_drift.context_curve import Curve
from logprob_drift.findings import Basis
from logprob_drift.sessions import sessions_alike
from ringtrue.records import Check, Finding, Party
from tokenizer_checks import findings as token_findings

OF_THE_CURVE = (Check.TOKENS, Check.LOGPROBS, Check.CONTEXT, Check.IDENTITY)
_OF_LOGPROBS = (Check.LOGPROBS, Check.CONTEXT, Check.IDENTITY)


def unmeasured_everywhere(
    endpoint: str, checks: Iterable[Check], reason: str, party: Party
) -> tuple[Finding, ...]:
    """Return an UNKNOWN for every check, with one reason."""
    return tuple(availability.unmeasured(endpoint, check, reason, party) for check in dict.fromkeys(checks))


async def curve_findings(
    endpoint: str,
    asked: Asked,
    comparisons: Comparisons,
    curve: Curve | None,
    questions: Questions,
    rng: np.random.Generator,
) -> tuple[Finding, ...]:
    """Return the findings of the context curve, most upstream first.

    The reference is held against itself first: where it differs by more than
    `AGREEMENT`, no logprob of the endpoint is judged. Beyond the noise floor
    the registered models are asked; the endpoint is asked nothing.
    """
    if asked.blocked is not None:
        return tuple(
            availability.unmeasured_because(endpoint, check, asked.blocked) for check in OF_THE_CURVE
        )
    tokens = token_findings.judge(
        endpoint, comparisons.agreement, comparisons.harm, greedy_departs=comparisons.greedy_departs
    )
    difference = await questions.truth.against_itself() if curve is not None else None
    obstacle = _obstacle(asked, comparisons, curve, difference)
    if obstacle is not None or curve is None:
        reason, party = obstacle or ("nothing could be compared", Party.UNKNOWN)
        return (*tokens, *unmeasured_everywhere(endpoint, _OF_LOGPROBS, reason, party))
    alike = sessions_alike([one.row for one in comparisons.measured], curve.gross)
    identified = await identity(
        endpoint,
        comparisons.measured,
        curve,
        questions.registered,
        questions.truth,
        rng,
        sessions_alike=alike,
    )
    basis = Basis(
        withheld=comparisons.withheld,
        own_ids=comparisons.own_ids,
        counted=comparisons.agreement.counted,
        unusable={defect.value: count for defect, count in comparisons.defects.items()},
        variant=identified.variant,
    )
    judged = logprob_findings.judge(
        endpoint, curve, basis, sessions_alike=alike, other_model_fits=identified.other_model_fits
    )
    return (*tokens, *judged, identified.finding)


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
