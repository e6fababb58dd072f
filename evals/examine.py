"""One examination of one endpoint: ask, compare, judge. It stores nothing.

The nightly cycle and the gate both call `examine`; what is measured is handed
to ``emit`` as it comes, so that whoever stores it loses nothing when the
examination is cut short.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evals import availability
from evals.asking import Asking
from evals.comparisons import Emit, compare_answers
from evals.curve_numbers import Scribe
from evals.judging import OF_THE_CURVE, curve_findings, unmeasured_everywhere
from evals.parts.asker import Asker
from evals.parts.asking_parts import ask_parts, known_from
from evals.parts.part import Part
from evals.parts.prompts.part import with_layers
from evals.preflight import promised_length
from evals.questions import Questions
from logprob_drift.context_curve import NOTHING_EARLIER, Curve, Row, trace
from probes.clock import Clock
from ringtrue.endpoint import Endpoint
from ringtrue.records import Check, Exchange, Finding, Party


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found. ``curve`` is ``None`` when no logprobs could be compared."""

    endpoint: str
    model: str
    findings: tuple[Finding, ...]
    curve: Curve | None = None


async def examine(
    endpoint: Endpoint,
    questions: Questions,
    *,
    run: str,
    clock: Clock,
    emit: Emit,
    on_progress: Callable[[int], None],
    record: Callable[[Exchange], None] | None = None,
    earlier: Mapping[int, Sequence[Row]] = NOTHING_EARLIER,
) -> Examination:
    """Ask ``endpoint`` every prompt of the curve that it promises to take, then the parts, and judge.

    ``on_progress`` is called with the number of requests that are done with,
    in all `Questions.steps`. ``earlier`` is what nights before this one
    measured at lengths whose prompts take turns (`logprob_drift.context_curve.trace`).
    Nothing that an endpoint does raises: what could not be measured becomes a
    finding that says so.
    """
    truth, plan, parts, spec = questions.truth, questions.plan, questions.parts, endpoint.spec
    scribe = Scribe(spec.name, run)
    promised = await promised_length(endpoint, truth.reference)
    prompts = [prompt for prompt in truth.prompts if len(truth.expected[prompt.id]) < promised]
    on_progress(len(truth.prompts) - len(prompts))
    if not prompts:
        shortest = min(len(ids) for ids in truth.expected.values())
        reason = f"no prompt fits: the endpoint takes {promised:,} tokens and the shortest has {shortest:,}"
        checks = (*OF_THE_CURVE, Check.WIRE, *(part.check for part in parts))
        unmeasured = unmeasured_everywhere(spec.name, checks, reason, Party.CALLER)
        on_progress(sum(len(part.planned(spec)) for part in parts))
        return Examination(spec.name, spec.model, unmeasured)
    asking = Asking(
        endpoint, truth, plan, scribe, clock=clock, emit=emit, on_progress=on_progress, record=record
    )
    asked = await asking.ask_all(prompts)
    rng = np.random.default_rng([plan.seed, zlib.crc32(spec.name.encode())])
    comparisons = await compare_answers(asked.answers, asked.compared, truth, rng)
    curve = None
    if comparisons.measured:
        lengths = sorted({prompt.bucket for prompt in prompts})
        turning = {length: earlier.get(length, ()) for length in truth.turning}
        curve = trace([one.row for one in comparisons.measured], lengths, rng, earlier=turning)
        await emit(scribe.of_curve(comparisons.measured, curve, clock.now()))
    of_curve = await curve_findings(spec.name, asked, comparisons, curve, questions, rng)

    def asker_of(part: Part) -> Asker:
        return Asker(
            endpoint,
            Scribe(spec.name, run, part.name),
            seed=plan.seed,
            clock=clock,
            emit=emit,
            on_progress=on_progress,
            record=record,
        )

    of_parts, sent = await ask_parts(
        parts, known_from(asked, of_curve), asker_of, blocked=asked.blocked, on_progress=on_progress
    )
    wire = availability.judge(spec.name, [*asked.exchanges, *sent])
    # What the curve could not tell for want of logprobs, a part may have told by tokens.
    told = {finding.check for finding in of_parts if finding.measured}
    of_curve = tuple(finding for finding in of_curve if finding.measured or finding.check not in told)
    of_curve = with_layers(of_curve, of_parts)
    return Examination(spec.name, spec.model, (wire, *of_curve, *of_parts), curve)
