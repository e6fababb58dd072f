"""Which layer is to blame while alarms of series stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collector.streams.watched import Watched
from ringtrue.nightly_numbers import OF_CHATS
from ringtrue.records import DRIFT, Cause, Check, Finding, Severity, State
from ringtrue.verdict import state_of


@dataclass(frozen=True, slots=True)
class Tonight:
    """What tonight's findings say of the prompt and of logprobs.

    ``own_ids``: the token IDs were the model's own, or nothing showed that
    they differ; ``ids_shown``: they were seen, not only counted. ``believed``:
    logprobs were compared; ``logprobs_fine``: and lie within the floor;
    ``some_sessions``: a share of the sessions is served by something else.
    """

    own_ids: bool
    ids_shown: bool
    believed: bool
    logprobs_fine: bool
    some_sessions: bool


def tonight_of(findings: Sequence[Finding]) -> Tonight:
    """Return what ``findings`` of one endpoint and night say."""
    # Those of the curve's own prompts: a fault of tools changes none of them.
    tokens = [f for f in findings if f.check is Check.TOKENS and not f.code.startswith(OF_CHATS)]
    logprobs = [finding for finding in findings if finding.check is Check.LOGPROBS]
    alike = bool(tokens) and all(finding.severity is Severity.INFO for finding in tokens)
    measured = any(finding.measured for finding in tokens)
    counted = any(finding.evidence.get("counted") is True for finding in tokens)
    return Tonight(
        own_ids=alike,
        ids_shown=alike and measured and not counted,
        believed=alike and measured and any(finding.value is not None for finding in logprobs),
        logprobs_fine=bool(logprobs) and all(state_of(finding) is State.OK for finding in logprobs),
        some_sessions=any(f.check is Check.SESSIONS and state_of(f) in DRIFT for f in findings),
    )


def blame(
    rows: Sequence[Watched], tonight: Tonight, *, only_some_lengths: bool
) -> tuple[Cause, tuple[Cause, ...]]:
    """Return the cause and its alternatives while alarms of ``rows`` stand, the first to begin first.

    Some bad sessions explain what the logprobs of all together show. Where
    logprobs are those of the model tonight, other choices of tokens come from
    sampling.
    """
    possible = [cause for row in rows for cause in (row.cause, *row.alternatives)]
    if tonight.logprobs_fine and rows[0].check is Check.SAMPLING:
        possible = [Cause.SAMPLING]
    if tonight.some_sessions and rows[0].check is Check.LOGPROBS:
        possible.insert(0, Cause.MIXTURE)
    if only_some_lengths:
        possible.append(Cause.CONTEXT)
    cause, *alternatives = dict.fromkeys(possible)
    if not tonight.ids_shown:
        alternatives = [Cause.PROMPT, *(one for one in alternatives if one is not Cause.PROMPT)]
    return cause, tuple(alternatives)
