"""The parts of one examination, asked one after the other once the context curve is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evals import availability
from evals.asking import Asked
from evals.parts.asker import Asker
from evals.parts.part import Known, Part
from ringtrue.records import Check, Exchange, Failure, Finding, State
from ringtrue.verdict import loudest_of, state_of


def known_from(asked: Asked, findings: Sequence[Finding]) -> Known:
    """Return what the curve's ``findings`` say to the parts that come after it."""
    trust = asked.trust
    return Known(
        k=asked.k,
        trusted=asked.k is not None and (trust is None or trust.trusted is True),
        scaling=trust.scaling if trust is not None else None,
        logprobs=loudest_of(state_of(f) for f in findings if f.check is Check.LOGPROBS) or State.UNKNOWN,
    )


async def ask_parts(
    parts: Sequence[Part],
    known: Known,
    asker_of: Callable[[Part], Asker],
    *,
    blocked: Failure | None,
    on_progress: Callable[[int], None],
) -> tuple[list[Finding], list[Exchange]]:
    """Return what the parts find, and all that was sent for them.

    ``asker_of`` makes the asker of a part; of an endpoint that answered nothing
    (``blocked``) no part is asked.
    """
    findings: list[Finding] = []
    exchanges: list[Exchange] = []
    for part in parts:
        asker = asker_of(part)
        planned = len(part.planned(asker.spec))
        if blocked is not None:
            findings.append(availability.unmeasured_because(asker.spec.name, part.check, blocked))
        else:
            findings += await part.examine(asker, known)
            exchanges += asker.exchanges
        # What was decided early, or was not asked at all, is done with too.
        on_progress(max(planned - len(asker.exchanges), 0))
    return findings, exchanges
