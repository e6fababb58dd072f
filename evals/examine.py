"""One examination of one endpoint: ask, compare, judge. It stores nothing.

The nightly cycle and the gate both call `examine`; what is measured is handed
to ``emit`` as it comes, so that whoever stores it loses nothing when the
examination is cut short.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evals.asking import Asking
from evals.comparisons import Emit, compare_answers
from evals.curve_numbers import Scribe
from evals.judging import unmeasured_everywhere, verdict_findings
from evals.plan import ExaminePlan
from evals.preflight import promised_length
from evals.truth import Truth
from logprob_drift.context_curve import Curve, trace
from probes.clock import Clock
from ringtrue.endpoint import Endpoint
from ringtrue.records import Exchange, Finding, Party


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found. ``curve`` is ``None`` when no logprobs could be compared."""

    endpoint: str
    model: str
    findings: tuple[Finding, ...]
    curve: Curve | None = None


async def examine(
    endpoint: Endpoint,
    truth: Truth,
    plan: ExaminePlan,
    *,
    run: str,
    clock: Clock,
    emit: Emit,
    on_progress: Callable[[int], None],
    record: Callable[[Exchange], None] | None = None,
) -> Examination:
    """Ask ``endpoint`` every prompt of ``truth`` that it promises to take, and judge the answers.

    ``on_progress`` is called with the number of prompts that are done with,
    in all as many as ``truth`` has. Nothing that an endpoint does raises:
    what could not be measured becomes a finding that says so.
    """
    spec = endpoint.spec
    scribe = Scribe(spec.name, run)
    promised = await promised_length(endpoint, truth.reference)
    prompts = [prompt for prompt in truth.prompts if len(truth.expected[prompt.id]) < promised]
    on_progress(len(truth.prompts) - len(prompts))
    if not prompts:
        shortest = min(len(ids) for ids in truth.expected.values())
        reason = f"no prompt fits: the endpoint takes {promised:,} tokens and the shortest has {shortest:,}"
        return Examination(spec.name, spec.model, unmeasured_everywhere(spec.name, reason, Party.CALLER))
    asking = Asking(
        endpoint, truth, plan, scribe, clock=clock, emit=emit, on_progress=on_progress, record=record
    )
    asked = await asking.ask_all(prompts)
    rng = np.random.default_rng([plan.seed, zlib.crc32(spec.name.encode())])
    comparisons = await compare_answers(asked.answers, asked.compared, truth, rng)
    curve = None
    if comparisons.measured:
        lengths = sorted({prompt.bucket for prompt in prompts})
        curve = trace([one.row for one in comparisons.measured], lengths, rng)
        await emit(scribe.of_curve(comparisons.measured, curve, clock.now()))
    difference = await truth.against_itself() if curve is not None else None
    findings = verdict_findings(spec.name, asked, comparisons, curve, self_difference=difference)
    return Examination(spec.name, spec.model, findings, curve)
